//! The program that agents run for every event. It has the system's allocator, which is ready at once.

use std::process::ExitCode;

fn main() -> ExitCode {
    hookyard::cli::run_relay(std::env::args_os())
}
