//! The rules of the house that a machine can keep: who may know whom.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Which crates of the house each crate may depend on; `crates/README.md` says why.
const MAY_KNOW: [(&str, &[&str]); 11] = [
    ("solver", &[]),
    ("packing", &["solver"]),
    ("formats", &[]),
    ("proto", &[]),
    ("store", &[]),
    ("server", &["proto", "store", "packing", "solver"]),
    ("worker", &["store", "packing", "solver"]),
    ("client", &["proto"]),
    ("local-postgres", &[]),
    ("cli", &["client", "formats", "local-postgres", "proto", "server", "solver", "store", "worker"]),
    ("e2e", &["local-postgres"]),
];
/// Crates from outside that only one crate may name.
const ONLY: [(&str, &str); 2] = [("sqlx", "store"), ("tonic-reflection", "server")];
/// Crates that depend on nothing from outside.
const STD_ONLY: [&str; 3] = ["solver", "packing", "formats"];

fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = MetadataCommand::new().no_deps().exec().expect("cargo metadata");
    metadata
        .packages
        .into_iter()
        .map(|package| {
            let normal = package
                .dependencies
                .into_iter()
                .filter(|dependency| dependency.kind == DependencyKind::Normal);
            (package.name.to_string(), normal.map(|dependency| dependency.name).collect())
        })
        .collect()
}

#[test]
fn crates_know_only_whom_they_may() {
    let all = dependencies();
    let house: BTreeSet<&str> = MAY_KNOW.iter().map(|(name, _)| *name).collect();
    assert_eq!(all.keys().map(String::as_str).collect::<BTreeSet<_>>(), house, "a crate without a rule");
    for (name, allowed) in MAY_KNOW {
        let known: BTreeSet<&str> =
            all[name].iter().map(String::as_str).filter(|other| house.contains(other)).collect();
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        assert!(known.is_subset(&allowed), "{name} knows {known:?}, but may know only {allowed:?}");
    }
}

#[test]
fn some_libraries_are_named_in_one_crate_only() {
    for (name, dependencies) in dependencies() {
        for (library, owner) in ONLY {
            assert!(
                name == owner || !dependencies.contains(library),
                "{name} names {library}, which is {owner}'s"
            );
        }
        if STD_ONLY.contains(&&*name) {
            let house: BTreeSet<String> = MAY_KNOW.iter().map(|(name, _)| (*name).to_owned()).collect();
            let outside: Vec<_> = dependencies.difference(&house).collect();
            assert!(outside.is_empty(), "{name} depends on {outside:?}");
        }
    }
}

/// Every other crate forbids it; the solver denies it, and allows it for its module of vector instructions.
#[test]
fn unsafe_code_is_in_one_module_of_the_solver_alone() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate is in crates/");
    for (name, _) in MAY_KNOW {
        let source = crates.join(name).join("src");
        let roots: Vec<_> = ["lib.rs", "main.rs"]
            .map(|file| source.join(file))
            .into_iter()
            .filter(|file| file.exists())
            .collect();
        assert!(!roots.is_empty(), "{name} has no root");
        for root in roots {
            let text = fs::read_to_string(&root).expect("a root can be read");
            if name == "solver" {
                assert!(text.contains("#![deny(unsafe_code)]"));
                let allowed: Vec<&str> = text.split("#[allow(unsafe_code").skip(1).collect();
                assert_eq!(allowed.len(), 1, "one module of the solver");
                let module = allowed[0].lines().find(|line| line.contains("mod "));
                assert_eq!(module, Some("mod simd;"));
            } else {
                assert!(text.contains("#![forbid(unsafe_code)]"), "{}", root.display());
            }
        }
    }
    let allows = |text: &str| text.contains("allow(unsafe_code") || text.contains("expect(unsafe_code");
    let elsewhere: Vec<_> = files_below(&crates.join("solver/src"))
        .into_iter()
        .filter(|file| !file.ends_with("src/lib.rs") && allows(&fs::read_to_string(file).expect("text")))
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
