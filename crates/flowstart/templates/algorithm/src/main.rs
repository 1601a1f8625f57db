// The commands of flowstart, with the start of this crate among the others (those over QUIC and in
// the kernel ask for features = ["quic", "kernel"] of flowstart in Cargo.toml):
//
// ```text
// cargo run                                  # beside the usual starts: a table and a report
// cargo run -- compare -C my_start+cubic,cubic --rtt 80ms
// cargo run -- frontier -C my_start+cubic,cubic --quick
// ```

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Err(error) = my_start::register() {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.len() < 2 {
        let usual = "my_start+cubic,hystart+cubic,hystart_plus_plus+cubic,slow_start+cubic,adaptive_chirping+cubic";
        arguments.extend(["compare", "-C", usual].map(OsString::from));
    }
    flowstart::main_with(arguments)
}
