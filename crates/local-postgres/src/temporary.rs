//! Makes temporary folders that the cluster's user can reach.
use std::{
    env,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::{Error, account::Account, reach};

/// Makes a folder of the account's own, mode 0700, for which `fits` holds, in the first place that allows it.
pub(crate) fn folder(account: &Account, fits: impl Fn(&Path) -> bool) -> Result<TempDir, Error> {
    let places = [env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
    for place in &places {
        // A place that cannot be used is passed over; the error names all of them.
        let Ok(place) = fs::canonicalize(place) else { continue };
        let writable = fs::metadata(&place).is_ok_and(|metadata| account.may_write(&metadata));
        if !writable || reach::check(&place, &place, account, "").is_err() {
            continue;
        }
        let private = Permissions::from_mode(0o700);
        let made = tempfile::Builder::new().prefix("sudoku-batch-").permissions(private).tempdir_in(&place);
        let Ok(folder) = made else { continue };
        if !fits(folder.path()) {
            continue;
        }
        account.own_folder(folder.path()).map_err(Error::file("hand over", folder.path()))?;
        return Ok(folder);
    }
    let tried = places.map(|place| place.display().to_string()).join(", ");
    Err(Error::NoTemporaryFolder { user: account.name.clone(), tried })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_temporary_folder_is_private_and_removed() {
        let account = Account::choose().unwrap();
        let folder = folder(&account, |_| true).unwrap();
        let path = folder.path().to_owned();
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(metadata.mode() & 0o777, 0o700);
        assert!(account.may_write(&metadata));
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn a_place_that_does_not_fit_is_passed_over() {
        let error = folder(&Account::choose().unwrap(), |_| false).unwrap_err();
        assert!(error.to_string().contains("/var/tmp"), "{error}");
    }
}
