//! The command-line program. Owns the runtime and nothing else: it hands its arguments over and refuses to
//! look at them.

use std::process::ExitCode;

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return hookyard::cli::cannot_start(&error),
    };
    runtime.block_on(hookyard::cli::run(std::env::args_os()))
}
