//! The rules of the house that a machine can keep: who may know whom.

use std::collections::{BTreeMap, BTreeSet};

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
