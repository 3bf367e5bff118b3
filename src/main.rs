//! The command-line program. Owns the allocator and nothing else: it hands its arguments over and refuses to look at
//! them.

use std::process::ExitCode;

/// What an event allocates on one thread is mostly given back on another, which the system's allocator answers with
/// locks.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    hookyard::cli::run(std::env::args_os())
}
