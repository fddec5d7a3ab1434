//! Builds the crate anew when a migration is added: the macro that embeds them sees only the files that were there before.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
