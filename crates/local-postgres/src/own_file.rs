//! Opens this crate's own files in a folder that another user may write to.
use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use crate::{Error, account::Account};

/// Opens a file for reading and appending, making it if need be, and hands it to the account.
///
/// When root works in the folder of an ordinary user, that user may have put a link to a system file in the place of
/// ours; writing there or giving it away would be a hole. So a new file is made exclusively, which follows no link, and
/// one that exists has to be a regular file with this one name.
pub(crate) fn open(path: &Path, account: &Account) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(0o600);
    let created = options.clone().create_new(true).open(path);
    let file = match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => open_existing(path, &options),
        other => other,
    }
    .map_err(Error::file("open", path))?;
    account.own_file(&file).map_err(Error::file("hand over", path))?;
    Ok(file)
}

fn open_existing(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let named = fs::symlink_metadata(path)?;
    if !named.is_file() || named.nlink() != 1 {
        return Err(io::Error::other("it is a link or no regular file; remove it"));
    }
    let file = options.open(path)?;
    let opened = file.metadata()?;
    if (opened.dev(), opened.ino()) != (named.dev(), named.ino()) {
        return Err(io::Error::other("it was replaced while being opened"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::{io::Write, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn appends_to_its_own_file_and_follows_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let account = Account::choose().unwrap();
        let path = folder.path().join("log");
        for _ in 0..2 {
            open(&path, &account).unwrap().write_all(b"x").unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), b"xx");

        let missing = folder.path().join("missing");
        for (name, target) in [("to-file", &path), ("to-nothing", &missing)] {
            let link = folder.path().join(name);
            symlink(target, &link).unwrap();
            let error = open(&link, &account).unwrap_err().to_string();
            assert!(error.contains("link"), "{error}");
        }
        fs::hard_link(&path, folder.path().join("hard")).unwrap();
        assert!(open(&path, &account).is_err());
        assert!(!missing.exists());
    }
}
