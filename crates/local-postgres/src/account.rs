//! Chooses the user that PostgreSQL runs as: an unprivileged one when started as root, else this process's own.
use std::{
    env,
    fs::{File, Metadata},
    io,
    os::unix::{
        fs::{MetadataExt, chown, fchown},
        process::CommandExt,
    },
    path::Path,
    process::Command,
};

use nix::unistd::{Gid, Uid, User};

use crate::Error;

/// Tried in this order; the first two are what packages of PostgreSQL add.
const UNPRIVILEGED_USERS: [&str; 3] = ["postgres", "_postgres", "nobody"];

/// A user to run programs as and to own the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
    pub(crate) name: String,
    /// This process is root and has to become this user; otherwise it is this user already.
    switch: bool,
}

/// The permission bits that are looked at, as in the lowest three bits of a mode.
#[derive(Debug, Clone, Copy)]
enum Access {
    Search = 0o1,
    WriteAndSearch = 0o3,
}

impl Account {
    /// The account for new data.
    pub(crate) fn choose() -> Result<Self, Error> {
        if !Uid::effective().is_root() {
            return Ok(Self::own());
        }
        let id = |name| env::var(name).ok()?.parse().ok();
        let caller = id("SUDO_UID").zip(id("SUDO_GID"));
        Self::unprivileged(caller, find_user)
            .ok_or_else(|| Error::NoUser { tried: UNPRIVILEGED_USERS.join(", ") })
    }

    /// The account for a folder that exists: its owner, as PostgreSQL insists on that; when that is root, the account
    /// for new data.
    pub(crate) fn owning(folder: &Path, metadata: &Metadata) -> Result<Self, Error> {
        let owner = metadata.uid();
        let own = Self::own();
        if own.uid == owner && owner != 0 {
            Ok(own)
        } else if own.uid != 0 {
            let folder = folder.to_owned();
            Err(Error::OtherOwner { folder, owner: name_of(owner), user: own.name })
        } else if owner == 0 {
            Self::choose()
        } else {
            Ok(Self { uid: owner, gid: metadata.gid(), name: name_of(owner), switch: true })
        }
    }

    fn own() -> Self {
        let uid = Uid::effective().as_raw();
        Self { uid, gid: Gid::effective().as_raw(), name: name_of(uid), switch: false }
    }

    /// `caller`: the uid and gid that sudo was called by.
    fn unprivileged(caller: Option<(u32, u32)>, find: impl Fn(&str) -> Option<User>) -> Option<Self> {
        if let Some((uid, gid)) = caller.filter(|&(uid, _)| uid != 0) {
            return Some(Self { uid, gid, name: name_of(uid), switch: true });
        }
        let user = UNPRIVILEGED_USERS.into_iter().find_map(find).filter(|user| !user.uid.is_root())?;
        Some(Self { uid: user.uid.as_raw(), gid: user.gid.as_raw(), name: user.name, switch: true })
    }

    /// Makes a program run as this user. The standard library drops root's supplementary groups along with its uid.
    pub(crate) fn apply(&self, command: &mut Command) {
        if self.switch {
            command.uid(self.uid).gid(self.gid);
        }
    }

    /// Hands a folder over to this user.
    pub(crate) fn own_folder(&self, folder: &Path) -> io::Result<()> {
        if self.switch { chown(folder, Some(self.uid), Some(self.gid)) } else { Ok(()) }
    }

    /// Hands an open file over to this user.
    pub(crate) fn own_file(&self, file: &File) -> io::Result<()> {
        if self.switch { fchown(file, Some(self.uid), Some(self.gid)) } else { Ok(()) }
    }

    /// Whether this user can pass through a folder; what a process does as itself the system tells it anyway.
    pub(crate) fn may_search(&self, folder: &Metadata) -> bool {
        !self.switch || self.permits(folder, Access::Search)
    }

    /// Whether this user can make and remove files in a folder.
    pub(crate) fn may_write(&self, folder: &Metadata) -> bool {
        !self.switch || self.permits(folder, Access::WriteAndSearch)
    }

    fn permits(&self, folder: &Metadata, access: Access) -> bool {
        let shift = match (folder.uid() == self.uid, folder.gid() == self.gid) {
            (true, _) => 6,
            (false, true) => 3,
            (false, false) => 0,
        };
        let wanted = access as u32;
        (folder.mode() >> shift) & wanted == wanted
    }

    /// Whether root acts as somebody else here.
    pub(crate) fn switches(&self) -> bool {
        self.switch
    }
}

fn find_user(name: &str) -> Option<User> {
    // A look-up that fails counts as no such user: there are others to try, and the last error says all names.
    User::from_name(name).ok().flatten()
}

fn name_of(uid: u32) -> String {
    User::from_uid(Uid::from_raw(uid)).ok().flatten().map_or_else(|| format!("#{uid}"), |user| user.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_under_sudo_becomes_the_caller() {
        let account = Account::unprivileged(Some((4_000_000, 7)), |_| None).unwrap();
        assert_eq!((account.uid, account.gid, account.name.as_str()), (4_000_000, 7, "#4000000"));
    }

    #[test]
    fn root_without_a_caller_takes_the_first_known_user() {
        let own = User::from_uid(Uid::from_raw(0)).unwrap().unwrap();
        let nobody = |name: &str| {
            (name == "nobody").then(|| User { uid: Uid::from_raw(9), name: name.to_owned(), ..own.clone() })
        };
        let account = Account::unprivileged(Some((0, 0)), nobody).unwrap();
        assert_eq!((account.uid, account.name.as_str()), (9, "nobody"));
        assert_eq!(Account::unprivileged(None, |_| None), None);
    }

    #[test]
    fn the_matching_class_of_bits_decides() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |bits| {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(bits)).unwrap();
            std::fs::metadata(folder.path()).unwrap()
        };
        let metadata = mode(0o701);
        let with = |uid, gid| Account { uid, gid, name: String::new(), switch: true };
        let (owner, group) = (metadata.uid(), metadata.gid());
        assert!(with(owner, group).may_write(&metadata));
        assert!(!with(owner + 1, group).may_search(&metadata));
        assert!(with(owner + 1, group + 1).may_search(&metadata));
        assert!(!with(owner + 1, group + 1).may_write(&metadata));
        assert!(!with(owner, group).may_search(&mode(0o077)));
        mode(0o700); // So that it can be removed.
    }
}
