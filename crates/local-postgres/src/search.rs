//! Lists the folders where PostgreSQL programs may be installed.
use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

/// Names one folder that is to be used, and no other.
pub(crate) const PROGRAMS_VARIABLE: &str = "SUDOKU_BATCH_PG_BIN";

/// The usual places: a folder, the beginning of the names in it, what follows each name.
const USUAL_PLACES: [(&str, &str, &str); 6] = [
    ("/usr/lib/postgresql", "", "bin"),         // Debian, Ubuntu
    ("/usr", "pgsql-", "bin"),                  // Red Hat and kin
    ("/opt/homebrew/opt", "postgresql", "bin"), // Homebrew on Apple silicon
    ("/usr/local/opt", "postgresql", "bin"),    // Homebrew on Intel
    ("/opt/local/lib", "postgresql", "bin"),    // MacPorts
    ("/Applications/Postgres.app/Contents/Versions", "", "bin"), // Postgres.app
];

/// What decides where to look.
#[derive(Debug, Clone, Default)]
pub(crate) struct Search {
    /// The value of [`PROGRAMS_VARIABLE`].
    pub(crate) named: Option<PathBuf>,
    /// The value of `PATH`.
    pub(crate) path: Option<OsString>,
    /// Look in the usual places, too.
    pub(crate) usual_places: bool,
}

impl Search {
    /// As this process's environment says.
    pub(crate) fn from_env() -> Self {
        let named = env::var_os(PROGRAMS_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
        Self { named, path: env::var_os("PATH"), usual_places: true }
    }

    /// The folders to look in when none is named: those of `PATH` first, each at most once.
    pub(crate) fn candidates(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for folder in self.path.iter().flat_map(env::split_paths) {
            // A link to initdb leads to the folder with all the programs of that version.
            let target = fs::canonicalize(folder.join("initdb")).ok();
            found.extend(target.as_deref().and_then(Path::parent).map(Path::to_owned));
            found.push(folder);
        }
        if self.usual_places {
            found.extend(USUAL_PLACES.into_iter().flat_map(|(parent, start, tail)| {
                children(Path::new(parent), start).into_iter().map(move |child| child.join(tail))
            }));
        }
        let mut seen = Vec::new();
        found.retain(|folder| {
            // A folder that cannot be resolved holds no programs.
            let Ok(folder) = fs::canonicalize(folder) else { return false };
            let new = !seen.contains(&folder);
            seen.push(folder);
            new
        });
        found
    }
}

/// The entries of a folder whose names begin with `start`, sorted; none when it cannot be read, as most do not exist.
fn children(parent: &Path, start: &str) -> Vec<PathBuf> {
    let mut children: Vec<_> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(start.as_bytes()))
        .map(|entry| entry.path())
        .collect();
    children.sort();
    children
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_on_the_path_leads_to_its_target_folder_once() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        let (links, real) = (root.join("links"), root.join("15/bin"));
        fs::create_dir_all(&links).unwrap();
        fs::create_dir_all(&real).unwrap();
        fs::write(real.join("initdb"), "").unwrap();
        symlink(real.join("initdb"), links.join("initdb")).unwrap();
        let path = env::join_paths([&links, &root.join("missing"), &real]).unwrap();
        let search = Search { path: Some(path), ..Search::default() };
        assert_eq!(search.candidates(), [real, links]);
    }

    #[test]
    fn children_are_chosen_by_the_start_of_their_names() {
        let root = tempfile::tempdir().unwrap();
        for name in ["pgsql-16", "pgsql-14", "share"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let expected = [root.path().join("pgsql-14"), root.path().join("pgsql-16")];
        assert_eq!(children(root.path(), "pgsql-"), expected);
        assert_eq!(children(&root.path().join("missing"), ""), Vec::<PathBuf>::new());
    }
}
