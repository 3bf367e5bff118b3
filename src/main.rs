//! The command-line program and its allocator.

use std::process::ExitCode;

/// Most memory of an event is freed on another thread than the one that allocated it, for which the system's allocator
/// takes locks.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    hookyard::cli::run(std::env::args_os())
}
