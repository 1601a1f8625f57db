//! The program `flowstart`.

use std::process::ExitCode;

fn main() -> ExitCode {
    flowstart::main()
}
