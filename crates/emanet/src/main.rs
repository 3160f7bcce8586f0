//! The `emanet` binary: parses and dispatches, nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    emanet::cli::main()
}
