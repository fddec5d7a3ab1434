//! Checks that the user PostgreSQL runs as can pass every folder on the way to a path.
use std::{fs, path::Path};

use crate::{Error, account::Account};

/// Checks `folder`, which has no links in it, and every folder above it, from the root down.
///
/// Only the permission bits count: supplementary groups are dropped with root's privileges, and access lists are not
/// looked at.
pub(crate) fn check(
    folder: &Path,
    wanted: &Path,
    account: &Account,
    remedy: &'static str,
) -> Result<(), Error> {
    if !account.switches() {
        return Ok(());
    }
    let mut on_the_way: Vec<_> = folder.ancestors().collect();
    on_the_way.reverse();
    for closed in on_the_way {
        let metadata = fs::metadata(closed).map_err(Error::file("look at", closed))?;
        if !account.may_search(&metadata) {
            let (closed, wanted) = (closed.to_owned(), wanted.to_owned());
            return Err(Error::Unreachable { closed, wanted, user: account.name.clone(), remedy });
        }
    }
    Ok(())
}
