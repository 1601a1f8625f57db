//! The embedded experiments are a part of the program: a new or changed file is a reason to build
//! again.

fn main() {
    println!("cargo:rerun-if-changed=experiments");
    println!("cargo:rerun-if-changed=build.rs");
}
