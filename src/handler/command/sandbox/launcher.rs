//! The launcher: restricts this process and then replaces it with the hook's program.

use std::{
    env,
    ffi::OsString,
    fs::File,
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::Command,
};

use rustix::{
    io::Errno,
    process::{Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit},
};

use super::{
    super::process::{Program, SpawnError},
    arguments::{self, LaunchRequest},
};
use crate::{
    model::{Approval, ResourceLimits},
    platform,
};

/// What the message of a launcher begins with that could not start its program. It counts only for a process that was
/// killed, so no output of a hook can be taken for one.
const REFUSAL: &[u8] = b"hookyard-sandbox: ";

/// Runs a program in its sandbox if the arguments of this process ask for it; then it does not return. `arguments`
/// include the program's own name.
///
/// A program that embeds hookyard can be its own launcher: it calls this function first of all in `main`, before it
/// starts a thread, and names itself in the setting `sandbox.launcher`.
///
/// ```
/// hookyard::handler::command::sandbox::launch_if_asked(std::env::args_os());
/// ```
pub fn launch_if_asked(arguments: impl IntoIterator<Item = OsString>) {
    let mut arguments = arguments.into_iter().skip(1).peekable();
    if arguments.next_if(|first| first == arguments::COMMAND).is_some() {
        let arguments: Vec<_> = arguments.collect();
        refuse(&launch(&arguments));
    }
}

/// What a launcher says that was killed before it ran its program.
pub(in crate::handler::command) fn refusal(stderr: &[u8]) -> Option<String> {
    let message = stderr.strip_prefix(REFUSAL)?;
    Some(String::from_utf8_lossy(message).trim_end().to_owned())
}

/// Ends this process in a way that no hook's verdict looks like.
fn refuse(message: &str) -> ! {
    let text = [REFUSAL, message.as_bytes(), b"\n"].concat();
    // Without a reader there is still the signal.
    drop(io::stderr().write_all(&text));
    loop {
        // It cannot fail for this process.
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

/// Returns why the program does not run; otherwise it runs, and nothing returns.
fn launch(arguments: &[OsString]) -> String {
    let request = match LaunchRequest::read(arguments) {
        Ok(request) => request,
        Err(why) => return format!("the sandbox's launcher was called wrongly: {why}"),
    };
    if let Err(why) = restrict(&request) {
        return why;
    }
    let environment: Vec<_> = env::vars_os()
        .filter_map(|(name, value)| Some((arguments::original_name(&name)?.to_owned(), value)))
        .collect();
    let program = Program {
        path: request.program,
        args: request.args,
        cwd: env::current_dir().unwrap_or_default(),
        environment,
        approval: Approval::of_launcher(),
    };
    if is_executable(&program.path) && !has_format(&program.path) {
        return SpawnError::of(&program, Errno::NOEXEC.into()).to_string();
    }
    let error = execute(&program);
    if error.kind() == io::ErrorKind::PermissionDenied && is_executable(&program.path) {
        let path = program.path.display();
        return format!(
            "the sandbox does not let `{path}` run; add its directory to `read` of the sandbox in the settings"
        );
    }
    SpawnError::of(&program, error).to_string()
}

/// Whether a file is a script with a `#!` line or a program of this machine. Checked here, because `exec` has a shell
/// run what the kernel refuses, whose exit code would look like the hook's.
fn has_format(path: &Path) -> bool {
    let mut head = [0; 20];
    let Ok(length) = File::open(path).and_then(|mut file| file.read(&mut head)) else {
        // It is not there, or may be run and not read: `exec` knows.
        return true;
    };
    let head = &head[..length];
    head.starts_with(b"#!") || platform::is_program(head)
}

#[allow(clippy::disallowed_methods, reason = "this is the process that was started for the hook")]
fn execute(program: &Program) -> io::Error {
    let variables = program.environment.iter().map(|(name, value)| (name, value));
    Command::new(&program.path).args(&program.args).env_clear().envs(variables).exec()
}

fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Applies a sandbox to this process.
///
/// Returns what could not be applied.
fn restrict(request: &LaunchRequest) -> Result<(), String> {
    platform::restrict_access(&request.sandbox, &request.root)?;
    let limits = &request.sandbox.limits;
    limit_resources(limits).map_err(|error| format!("a limit cannot be set: {error}"))?;
    platform::restrict_calls(&request.sandbox)
}

fn limit_resources(limits: &ResourceLimits) -> Result<(), Errno> {
    let count = |number: Option<std::num::NonZeroUsize>| number.map(|number| number.get() as u64);
    let limits = [
        (Resource::Core, Some(0)),
        (Resource::Cpu, limits.cpu.map(|time| time.as_secs().max(1))),
        (Resource::Data, limits.memory.map(|bytes| bytes as u64)),
        (Resource::Nproc, count(limits.processes)),
        (Resource::Fsize, limits.file_size.map(|bytes| bytes as u64)),
        (Resource::Nofile, count(limits.files)),
    ];
    for (resource, limit) in limits {
        let Some(limit) = limit else { continue };
        // At the first limit of its time a process gets SIGXCPU, at the second SIGKILL.
        let extra = u64::from(resource == Resource::Cpu);
        let maximum = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let current = Some(limit.min(maximum));
        setrlimit(resource, Rlimit { current, maximum: Some(limit.saturating_add(extra).min(maximum)) })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_message_of_a_launcher_is_a_refusal() {
        assert_eq!(refusal(b"hookyard-sandbox: no such program\n").as_deref(), Some("no such program"));
        assert_eq!(refusal(b"warning: hookyard-sandbox: x"), None);
        assert_eq!(refusal(b""), None);
    }
}
