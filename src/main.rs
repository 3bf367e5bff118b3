//! The command-line program. Owns the runtime and nothing else: it hands its arguments over and refuses to
//! look at them.

use std::process::ExitCode;

/// What an event allocates on one thread is mostly given back on another, which the system's allocator answers with
/// locks.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return hookyard::cli::cannot_start(&error),
    };
    runtime.block_on(hookyard::cli::run(std::env::args_os()))
}
