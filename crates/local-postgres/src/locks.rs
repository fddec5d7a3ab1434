//! Keeps two owners, or an owner and the helpers of a killed one, from working on the same data folder.
use std::{
    fs::{File, TryLockError},
    io::{Read, Write},
    path::{Path, PathBuf},
    process,
    time::Duration,
};

use crate::{Error, account::Account, own_file, wait::poll, watcher};

/// How long helpers of a killed owner may go on: as long as a watcher takes at most, and some more.
const HELPERS_WAIT: Duration = Duration::from_secs(watcher::STOP_SECONDS_MAX + 30);

/// The data folder's two locks. The files stay: removing one would let two processes lock different files of one name.
#[derive(Debug)]
pub(crate) struct Locks {
    /// Held by the owner.
    _owner: File,
    /// Held by the owner and, through inherited copies, by its helpers until each has ended.
    helpers: File,
    helpers_path: PathBuf,
}

impl Locks {
    /// Takes the owner's lock at once or not at all, then waits until the helpers of a killed owner have ended.
    pub(crate) fn take(folder: &Path, account: &Account) -> Result<Self, Error> {
        let path = folder.join("lock");
        let mut owner = own_file::open(&path, account)?;
        if !try_lock(&owner, &path)? {
            return Err(Error::InUse { folder: folder.to_owned(), pid: read_pid(&mut owner) });
        }
        owner
            .set_len(0)
            .and_then(|()| writeln!(owner, "{}", process::id()))
            .map_err(Error::file("write", &path))?;

        let path = folder.join("helpers.lock");
        let helpers = own_file::open(&path, account)?;
        let locked = poll(HELPERS_WAIT, || Ok(try_lock(&helpers, &path)?.then_some(())))?;
        if locked.is_none() {
            return Err(Error::HelpersBusy { folder: folder.to_owned(), seconds: HELPERS_WAIT.as_secs() });
        }
        Ok(Self { _owner: owner, helpers, helpers_path: path })
    }

    /// A copy for a helper to inherit: the lock lasts until every copy is closed.
    pub(crate) fn for_helper(&self) -> Result<File, Error> {
        self.helpers.try_clone().map_err(Error::file("copy", &self.helpers_path))
    }
}

fn try_lock(file: &File, path: &Path) -> Result<bool, Error> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(cause)) => Err(Error::file("lock", path)(cause)),
    }
}

/// The holder's process, if it has written it yet: it serves the message only.
fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_hears_who_the_first_is() {
        let folder = tempfile::tempdir().unwrap();
        let account = Account::choose().unwrap();
        let locks = Locks::take(folder.path(), &account).unwrap();
        let Err(Error::InUse { pid, .. }) = Locks::take(folder.path(), &account) else {
            panic!("not refused")
        };
        assert_eq!(pid, Some(process::id()));
        drop(locks);
        Locks::take(folder.path(), &account).unwrap();
    }

    #[test]
    fn an_owner_waits_for_the_helpers_of_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let account = Account::choose().unwrap();
        let locks = Locks::take(folder.path(), &account).unwrap();
        let helper = locks.for_helper().unwrap();
        drop(locks);
        let probe = own_file::open(&folder.path().join("helpers.lock"), &account).unwrap();
        assert!(!try_lock(&probe, folder.path()).unwrap());
        drop(helper);
        Locks::take(folder.path(), &account).unwrap();
    }
}
