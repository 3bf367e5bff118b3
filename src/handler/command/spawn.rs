//! Starting a program, and why it could not be started.
//!
//! Uses no setting that keeps the standard library from `posix_spawn` (`pre_exec`, uid or gid): forking a large daemon
//! costs milliseconds.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

use super::direct::DirectProgram;
use super::ledger::PROCESS_MARK;
use super::reap::{ChildStart, OwnChild};
use crate::model::Approval;

/// A program to start, with its arguments, directory and environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program's absolute path; no `PATH` is searched.
    pub path: PathBuf,
    /// Its arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// The directory it starts in.
    pub cwd: PathBuf,
    /// Its whole environment: nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// Proof that it may be started.
    pub approval: Approval,
}

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The path is relative and would be looked up in hookyard's own `PATH`.
    #[error("the program `{path}` is not an absolute path; write the path out")]
    RelativeProgram {
        /// The program.
        path: PathBuf,
    },
    /// It runs in the workspace, and is no longer what a person has agreed to.
    #[error("{why}")]
    Untrusted {
        /// What has changed.
        why: String,
    },
    /// No file has that name.
    #[error("the program `{path}` does not exist; install it or correct the hook's command")]
    MissingProgram {
        /// The program.
        path: PathBuf,
    },
    /// The program exists, but what its first line or its header names to run it does not.
    #[error("the interpreter that `{path}` asks for does not exist; install it or correct the `#!` line")]
    MissingInterpreter {
        /// The program.
        path: PathBuf,
    },
    /// The file has no execute permission, is a directory or lies on a file system mounted `noexec`.
    #[error(
        "`{path}` is not an executable file; make it one with `chmod +x`, or start it through its interpreter"
    )]
    NotExecutable {
        /// The program.
        path: PathBuf,
    },
    /// The file is neither a program of this architecture nor a script with a `#!` line.
    #[error(
        "`{path}` has no format that this system can run; add a `#!` line or install a build for this machine"
    )]
    WrongFormat {
        /// The program.
        path: PathBuf,
    },
    /// Arguments and environment exceed the system's limit, in all or in one string.
    #[error(
        "arguments and environment of `{path}` have {bytes} bytes, the longest {longest}, more than the system takes; \
         shorten them or pass the data on stdin"
    )]
    TooLarge {
        /// The program.
        path: PathBuf,
        /// The bytes of all arguments and variables.
        bytes: usize,
        /// The bytes of the longest argument or variable.
        longest: usize,
    },
    /// A string of the program cannot be handed to the system.
    #[error("path, arguments, environment or cwd of `{path}` have a NUL byte; remove it")]
    NulByte {
        /// The program.
        path: PathBuf,
    },
    /// The directory to start in does not exist.
    #[error("the working directory `{cwd}` does not exist; create it or correct the hook's `cwd`")]
    MissingCwd {
        /// The directory.
        cwd: PathBuf,
    },
    /// The directory to start in is a file, or closed to this user.
    #[error("the working directory `{cwd}` cannot be entered; correct the hook's `cwd` or its permissions")]
    UnusableCwd {
        /// The directory.
        cwd: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system has no process, descriptor or memory left.
    #[error(
        "the system could not provide a process for `{path}`; lower the pool's concurrency or raise the limits"
    )]
    Exhausted {
        /// The program.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Any other error of the system.
    #[error("`{path}` could not be started in `{cwd}`")]
    Other {
        /// The program.
        path: PathBuf,
        /// The directory.
        cwd: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The number of the next process that is started.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The mark of one process and of all that it starts: that of its program and a number.
pub(super) fn next_mark(program: &Program) -> Option<String> {
    // The last one: a variable of the hook must not change it.
    let (_, mark) = program.environment.iter().rfind(|(name, _)| name == PROCESS_MARK)?;
    Some(format!("{}.{}", mark.to_str()?, NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// Starts `program` as the leader of its own process group, with pipes for its three standard streams. `mark` is put
/// into its environment. A shell that would only start another program is left out.
pub(super) fn spawn(program: &Program, mark: Option<&str>) -> Result<OwnChild, SpawnError> {
    if !program.path.is_absolute() {
        return Err(SpawnError::RelativeProgram { path: program.path.clone() });
    }
    program.approval.check().map_err(|why| SpawnError::Untrusted { why })?;
    let start = ChildStart::begin();
    let Program { path, args, cwd, environment, .. } = program;
    let direct = DirectProgram::of(path, args, cwd, environment).and_then(|direct| {
        let mut command = command(&direct.path, &direct.words[1..], program, mark);
        // As a shell does.
        command.arg0(&direct.words[0]).env("PWD", cwd);
        // Why it cannot be started, the shell says.
        command.spawn().ok()
    });
    let started = match direct {
        Some(child) => Ok(child),
        None => command(path, args, program, mark).spawn(),
    };
    started.map(|child| start.finish(child)).map_err(|error| SpawnError::of(program, error))
}

/// The command for a program with these arguments, where and as another one runs.
#[allow(clippy::disallowed_methods, reason = "this is the place where processes are started")]
fn command(path: &Path, args: &[impl AsRef<OsStr>], program: &Program, mark: Option<&str>) -> Command {
    let mut command = Command::new(path);
    command
        .args(args)
        .env_clear()
        .envs(program.environment.iter().map(|(name, value)| (name, value)))
        .envs(mark.map(|mark| (PROCESS_MARK, mark)))
        .current_dir(&program.cwd)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

impl SpawnError {
    /// Finds out what is wrong with `program`, given the system's error.
    pub(super) fn of(program: &Program, source: io::Error) -> Self {
        let path = program.path.clone();
        match Errno::from_io_error(&source) {
            None if source.kind() == io::ErrorKind::InvalidInput => Self::NulByte { path },
            Some(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => {
                cwd_fault(program).unwrap_or_else(|| program_fault(program, &source))
            }
            Some(Errno::NOEXEC) => Self::WrongFormat { path },
            Some(Errno::TOOBIG) => too_large(program),
            Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => {
                Self::Exhausted { path, source }
            }
            _ => Self::Other { path, cwd: program.cwd.clone(), source },
        }
    }
}

/// The system's error does not say which path it is about, so the directory is checked again. Its entry `.` can be
/// read only by those who may enter it.
fn cwd_fault(program: &Program) -> Option<SpawnError> {
    let cwd = program.cwd.clone();
    let source = cwd.join(".").metadata().err()?;
    Some(match source.kind() {
        io::ErrorKind::NotFound => SpawnError::MissingCwd { cwd },
        _ => SpawnError::UnusableCwd { cwd, source },
    })
}

fn program_fault(program: &Program, source: &io::Error) -> SpawnError {
    let path = program.path.clone();
    match (source.kind(), path.metadata()) {
        (io::ErrorKind::PermissionDenied, _) => SpawnError::NotExecutable { path },
        (_, Ok(_)) => SpawnError::MissingInterpreter { path },
        (_, Err(_)) => SpawnError::MissingProgram { path },
    }
}

fn too_large(program: &Program) -> SpawnError {
    let variables = program.environment.iter().map(|(name, value)| name.len() + value.len() + 2);
    let lengths = program.args.iter().map(|arg| arg.len() + 1).chain(variables);
    let lengths: Vec<usize> = lengths.collect();
    let bytes = lengths.iter().sum();
    let longest = lengths.into_iter().max().unwrap_or(0);
    SpawnError::TooLarge { path: program.path.clone(), bytes, longest }
}
