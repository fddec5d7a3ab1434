//! Finds the installed PostgreSQL programs and their version.
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{Error, search::Search};

/// The oldest major version that is used.
pub(crate) const VERSION_MIN: u32 = 14;

const NEEDED: [&str; 3] = ["postgres", "initdb", "pg_ctl"];

/// The PostgreSQL programs of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    bin_dir: PathBuf,
    version: Version,
}

/// Major and minor version; ordered by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    major: u32,
    minor: u32,
}

impl Programs {
    /// Finds the newest installed PostgreSQL, 14 or newer.
    ///
    /// Looks in the folder named by `SUDOKU_BATCH_PG_BIN`, and only there if it is set; else along `PATH` and in the
    /// usual folders of Debian, Red Hat, Homebrew, `MacPorts` and Postgres.app.
    ///
    /// # Errors
    ///
    /// [`Error::NoPrograms`] when there is none; [`Error::NamedPrograms`] when the named folder is no good.
    pub fn find() -> Result<Self, Error> {
        Self::newest(&Search::from_env())
    }

    /// The programs for data made by major version `made_by`, or for new data.
    pub(crate) fn find_for(folder: &Path, made_by: Option<u32>) -> Result<Self, Error> {
        let search = Search::from_env();
        let newest = Self::newest(&search)?;
        let Some(made_by) = made_by.filter(|&made_by| made_by != newest.version.major) else {
            return Ok(newest);
        };
        let installed = if search.named.is_some() { Vec::new() } else { Self::installed(&search) };
        newest_of(installed.into_iter().filter(|programs| programs.version.major == made_by)).ok_or_else(
            || Error::OtherVersion { folder: folder.to_owned(), made_by, found: newest.version.major },
        )
    }

    /// The folder that holds `postgres`, `initdb`, `pg_ctl` and usually `psql`.
    #[must_use]
    pub fn bin_dir(&self) -> &Path {
        &self.bin_dir
    }

    /// The major version, 14 or more.
    #[must_use]
    pub fn major_version(&self) -> u32 {
        self.version.major
    }

    fn newest(search: &Search) -> Result<Self, Error> {
        let Some(folder) = &search.named else {
            return newest_of(Self::installed(search)).ok_or(Error::NoPrograms);
        };
        let unusable = |reason: String| Error::NamedPrograms { folder: folder.clone(), reason };
        if let Some(missing) = NEEDED.into_iter().find(|name| !folder.join(name).is_file()) {
            return Err(unusable(format!("which holds no {missing}")));
        }
        let programs =
            Self::at(folder).ok_or_else(|| unusable("whose postgres tells no version".to_owned()))?;
        if programs.version.major < VERSION_MIN {
            return Err(unusable(format!("which holds PostgreSQL {}", programs.version.major)));
        }
        Ok(programs)
    }

    fn installed(search: &Search) -> Vec<Self> {
        let candidates = search.candidates();
        let programs = candidates.iter().filter_map(|folder| Self::at(folder));
        programs.filter(|programs| programs.version.major >= VERSION_MIN).collect()
    }

    /// What a folder holds, whatever its version.
    fn at(folder: &Path) -> Option<Self> {
        // The programs run from another working folder, so a relative one would not do.
        let bin_dir = std::path::absolute(folder).ok()?;
        if !NEEDED.iter().all(|name| bin_dir.join(name).is_file()) {
            return None;
        }
        let output =
            Command::new(bin_dir.join("postgres")).arg("--version").stdin(Stdio::null()).output().ok()?;
        let version = parse_version(&String::from_utf8_lossy(&output.stdout))?;
        Some(Self { bin_dir, version })
    }
}

/// The newest; of equal ones the first found.
fn newest_of(programs: impl IntoIterator<Item = Programs>) -> Option<Programs> {
    programs.into_iter().reduce(|best, next| if next.version > best.version { next } else { best })
}

/// Reads `postgres (PostgreSQL) 15.14 (Debian 15.14-1)`, `… 9.6.24`, `… 18beta1`, `… 19devel`.
fn parse_version(text: &str) -> Option<Version> {
    let version = text.strip_prefix("postgres (PostgreSQL) ")?.split_whitespace().next()?;
    let mut numbers = version.split('.').map(|part| {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..digits].parse().ok()
    });
    let major = numbers.next()??;
    Some(Version { major, minor: numbers.next().flatten().unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use std::{env, fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn versions_are_read_from_what_postgres_says() {
        let parse = |text| parse_version(text).map(|version| (version.major, version.minor));
        assert_eq!(parse("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n"), Some((15, 14)));
        assert_eq!(parse("postgres (PostgreSQL) 17.5 (Homebrew)\n"), Some((17, 5)));
        assert_eq!(parse("postgres (PostgreSQL) 9.6.24\n"), Some((9, 6)));
        assert_eq!(parse("postgres (PostgreSQL) 18beta1\n"), Some((18, 0)));
        assert_eq!(parse("postgres (PostgreSQL) devel\n"), None);
        assert_eq!(parse("psql (PostgreSQL) 15.1\n"), None);
        assert_eq!(parse(""), None);
    }

    /// A folder with stand-ins for the programs of a version.
    fn install(parent: &Path, name: &str, version: &str) -> PathBuf {
        let folder = parent.join(name);
        fs::create_dir(&folder).unwrap();
        for name in NEEDED {
            let file = folder.join(name);
            fs::write(&file, format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    fn along(folders: &[&Path]) -> Search {
        Search { path: Some(env::join_paths(folders).unwrap()), ..Search::default() }
    }

    #[test]
    fn the_newest_installed_wins() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        let folders = [("a", "13.9"), ("b", "16.2"), ("c", "16.10"), ("d", "15.99")]
            .map(|(name, version)| install(&root, name, version));
        let paths = folders.each_ref().map(PathBuf::as_path);
        assert_eq!(Programs::newest(&along(&paths)).unwrap().bin_dir(), folders[2]);
        assert_eq!(Programs::installed(&along(&paths)).len(), 3);
    }

    #[test]
    fn nothing_found_says_how_to_install() {
        let root = tempfile::tempdir().unwrap();
        let old = install(root.path(), "old", "13.9");
        let error = Programs::newest(&along(&[&old])).unwrap_err();
        assert!(matches!(error, Error::NoPrograms));
        assert!(error.to_string().contains("apt-get install postgresql"));
    }

    #[test]
    fn a_named_folder_is_the_only_one() {
        let root = tempfile::tempdir().unwrap();
        let (old, new) = (install(root.path(), "old", "13.9"), install(root.path(), "new", "17.1"));
        let named = |folder: &Path| Search { named: Some(folder.to_owned()), ..along(&[&new]) };
        assert_eq!(Programs::newest(&named(&new)).unwrap().major_version(), 17);
        let too_old = Programs::newest(&named(&old)).unwrap_err().to_string();
        assert!(too_old.contains("SUDOKU_BATCH_PG_BIN") && too_old.contains("PostgreSQL 13"), "{too_old}");
        let empty = Programs::newest(&named(root.path())).unwrap_err().to_string();
        assert!(empty.contains("holds no postgres"), "{empty}");
    }
}
