//! Command line of flowstart.

fn main() {}
