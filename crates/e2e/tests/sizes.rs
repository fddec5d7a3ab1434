//! The rules of the house about sizes: what does not fit on a few screens is more than one thing.

use std::{
    fs,
    path::{Path, PathBuf},
};

use syn::visit::{self, Visit};

/// Lines of a file, at the most.
const FILE_LINES_MAX: usize = 500;
/// Lines of a function from its `fn` to its closing brace, at the most; what is nested in it, blank lines and comments count.
const FUNCTION_LINES_MAX: usize = 70;

/// Every Rust file of the house, by its path from `crates`, with its text.
fn sources() -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate is in crates/");
    let mut paths = Vec::new();
    collect(crates, &mut paths);
    paths.sort();
    assert!(paths.iter().any(|path| path.ends_with("e2e/tests/sizes.rs")), "not even this file was found");
    let read = |path: PathBuf| {
        let name = path.strip_prefix(crates).expect("a path below crates/").display().to_string();
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        (format!("crates/{name}"), text)
    };
    paths.into_iter().map(read).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the house") {
        let entry = entry.expect("an entry of a folder");
        let path = entry.path();
        if entry.file_type().expect("its type").is_dir() {
            if entry.file_name() != "target" {
                collect(&path, paths);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

/// The functions of one file that are too long.
struct TooLong<'a> {
    file: &'a str,
    found: Vec<String>,
}

impl TooLong<'_> {
    fn measure(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let last = body.brace_token.span.close().end().line;
        let lines = last - first + 1;
        if lines > FUNCTION_LINES_MAX {
            self.found.push(format!("{}:{first} {} ({lines} lines)", self.file, signature.ident));
        }
    }
}

impl Visit<'_> for TooLong<'_> {
    fn visit_item_fn(&mut self, function: &syn::ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &syn::ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.measure(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

fn too_long(file: &str, text: &str) -> Vec<String> {
    let syntax =
        syn::parse_file(text).unwrap_or_else(|error| panic!("{file}:{}: {error}", error.span().start().line));
    let mut functions = TooLong { file, found: Vec::new() };
    functions.visit_file(&syntax);
    functions.found
}

#[test]
fn files_are_short() {
    let long: Vec<String> = sources()
        .into_iter()
        .map(|(file, text)| (file, text.lines().count()))
        .filter(|(_, lines)| *lines > FILE_LINES_MAX)
        .map(|(file, lines)| format!("{file}:1 the file ({lines} lines)"))
        .collect();
    assert!(long.is_empty(), "more than {FILE_LINES_MAX} lines:\n{}", long.join("\n"));
}

#[test]
fn functions_are_short() {
    let long: Vec<String> = sources().iter().flat_map(|(file, text)| too_long(file, text)).collect();
    assert!(long.is_empty(), "more than {FUNCTION_LINES_MAX} lines:\n{}", long.join("\n"));
}

#[test]
fn functions_are_measured_wherever_they_stand() {
    let lines = |count: usize| "\n".repeat(count);
    // `fn` on one line, its brace `count` lines further down.
    let text = format!(
        "fn fits() {{{}}}\n#[cfg(test)]\nmod tests {{\n    /// Counts from `fn` on.\n    #[test]\n    fn long() {{{}}}\n}}\n\
         impl A {{ fn method() {{ fn inner() {{{}}} }} }}\ntrait T {{ fn given() {{{}}} fn asked(); }}\n",
        lines(FUNCTION_LINES_MAX - 1),
        lines(FUNCTION_LINES_MAX),
        lines(FUNCTION_LINES_MAX + 1),
        lines(FUNCTION_LINES_MAX + 2),
    );
    let found = too_long("a.rs", &text);
    assert_eq!(
        found,
        [
            "a.rs:75 long (71 lines)",
            "a.rs:147 method (72 lines)",
            "a.rs:147 inner (72 lines)",
            "a.rs:219 given (73 lines)"
        ]
    );
}
