//! Takes the data folder: its layout, whose it is, and that PostgreSQL's user can reach it.
use std::{
    fs::{self, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::{Error, account::Account, own_file, reach};

const REMEDY: &str = "choose another --data-dir, or open that folder with `chmod o+x`";

/// Says that a folder was taken by this crate; the first file made in it.
const MARKER: &str = "sudoku-batch-data";
const MARKER_TEXT: &str = "This folder holds a private PostgreSQL cluster of sudoku-batch.\n";

/// Says that the cluster beside it was made to the end.
const MADE_MARKER: &str = "postgres.made";

/// A folder that is ours: absolute, without links, mode 0700, owned by the cluster's user.
#[derive(Debug)]
pub(crate) struct DataFolder {
    path: PathBuf,
}

impl DataFolder {
    /// Takes a new, an empty or an own folder.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignFolder`] for any other; [`Error::Unreachable`] when a folder on the way is closed to the user
    /// that PostgreSQL runs as, before anything is made.
    pub(crate) fn take(given: &Path) -> Result<(Self, Account), Error> {
        let path = std::path::absolute(given).map_err(Error::file("find", given))?;
        if !path.try_exists().map_err(Error::file("look at", &path))? {
            let account = Account::choose()?;
            make_with_parents(&path, &account)?;
            return Ok((Self::claim(&path, &account)?, account));
        }
        let path = fs::canonicalize(&path).map_err(Error::file("find", &path))?;
        let metadata = fs::metadata(&path).map_err(Error::file("look at", &path))?;
        let foreign = |reason| Error::ForeignFolder { folder: path.clone(), reason };
        if !metadata.is_dir() {
            return Err(foreign("is not a folder"));
        }
        // In this order: the marker is the first file made, so a folder seen non-empty already has it.
        let empty = is_empty(&path)?;
        let marked = fs::symlink_metadata(path.join(MARKER)).is_ok_and(|marker| marker.is_file());
        if !empty && !marked {
            return Err(foreign("is not empty and was not made by sudoku-batch"));
        }
        let account = Account::owning(&path, &metadata)?;
        if let Some(parent) = path.parent() {
            reach::check(parent, &path, &account, REMEDY)?;
        }
        Ok((Self::claim(&path, &account)?, account))
    }

    /// Makes an empty or own folder the account's, and marks it.
    fn claim(path: &Path, account: &Account) -> Result<Self, Error> {
        let path = fs::canonicalize(path).map_err(Error::file("find", path))?;
        fs::set_permissions(&path, Permissions::from_mode(0o700)).map_err(Error::file("close", &path))?;
        account.own_folder(&path).map_err(Error::file("hand over", &path))?;
        let folder = Self { path };
        folder.write_marker(MARKER, MARKER_TEXT, account)?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The cluster itself, PostgreSQL's PGDATA.
    pub(crate) fn cluster(&self) -> PathBuf {
        self.path.join("postgres")
    }

    /// What PostgreSQL and its watcher say.
    pub(crate) fn log_file(&self) -> PathBuf {
        self.path.join("postgres.log")
    }

    /// Whether the cluster was made to the end.
    pub(crate) fn is_made(&self) -> bool {
        self.path.join(MADE_MARKER).is_file()
    }

    /// Notes on the disk that the cluster was made to the end: without this note the next start would remove it, so it
    /// must not be lost once data is promised.
    pub(crate) fn set_made(&self, account: &Account) -> Result<(), Error> {
        self.write_marker(MADE_MARKER, "initdb ended well.\n", account)
    }

    fn write_marker(&self, name: &str, text: &str, account: &Account) -> Result<(), Error> {
        let path = self.path.join(name);
        let mut file = own_file::open(&path, account)?;
        if file.metadata().map_err(Error::file("look at", &path))?.len() > 0 {
            return Ok(());
        }
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::File::open(&self.path)?.sync_all())
            .map_err(Error::file("write", &path))
    }
}

fn is_empty(folder: &Path) -> Result<bool, Error> {
    Ok(fs::read_dir(folder).map_err(Error::file("read", folder))?.next().is_none())
}

/// Makes a folder and those above it that are missing.
fn make_with_parents(path: &Path, account: &Account) -> Result<(), Error> {
    let existing = path.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    let existing = fs::canonicalize(existing).map_err(Error::file("find", existing))?;
    reach::check(&existing, path, account, REMEDY)?;

    let mut missing: Vec<_> = path.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    missing.reverse();
    for folder in missing {
        match fs::create_dir(folder) {
            // `new/..` exists once `new` does, and another start may be making the same folders.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made.map_err(Error::file("make", folder))?,
        }
        if account.switches() && folder != path {
            // Whatever root's umask is, the other user has to pass.
            fs::set_permissions(folder, Permissions::from_mode(0o755))
                .map_err(Error::file("open", folder))?;
        }
    }
    Ok(())
}
