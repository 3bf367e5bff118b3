//! The launcher: restricts this process and then replaces it with the hook's program.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    fs::File,
    io::{self, Read, Write},
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::Path,
    process::Command,
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2},
    io::Errno,
    process::{Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit},
    thread::{
        CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
        clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
        set_no_new_privs,
    },
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};

use super::{
    super::process::{Program, SpawnError},
    arguments::{self, LaunchRequest},
    paths,
};
use crate::model::{Approval, FilesystemAccess, NetworkAccess, ResourceLimits, Sandbox};

/// What the message of a launcher begins with that could not start its program. It counts only for a process that was
/// killed, so no output of a hook can be taken for one.
const REFUSAL: &[u8] = b"hookyard-sandbox: ";

/// The oldest Landlock whose restrictions of files have no gap: before it, files could be truncated.
const COMPLETE_FILES: ABI = ABI::V3;

/// The newest Landlock that this program knows.
const NEWEST: ABI = ABI::V9;

/// The error of a system call that a sandbox refuses.
const EACCES: u32 = 13;

/// The privileges that root's hooks keep.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// The machine whose programs a sandbox runs, as ELF numbers it.
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: u16 = 243;

/// The system calls that make sockets. `io_uring` makes them without `socket`.
#[cfg(target_arch = "x86_64")]
const SOCKET_CALLS: [i64; 2] = [41, 425];
#[cfg(not(target_arch = "x86_64"))]
const SOCKET_CALLS: [i64; 2] = [198, 425];

/// The system calls for what processes of a user share outside of all files: key rings, and the queues, semaphores and
/// memory of System V.
#[cfg(target_arch = "x86_64")]
const SHARED_OBJECT_CALLS: [i64; 14] = [248, 249, 250, 29, 30, 31, 64, 65, 66, 220, 68, 69, 70, 71];
#[cfg(not(target_arch = "x86_64"))]
const SHARED_OBJECT_CALLS: [i64; 14] = [217, 218, 219, 194, 196, 195, 190, 193, 191, 192, 186, 189, 188, 187];

/// `prlimit64`.
#[cfg(target_arch = "x86_64")]
const LIMIT_CALL: i64 = 302;
#[cfg(not(target_arch = "x86_64"))]
const LIMIT_CALL: i64 = 261;

/// `sched_setparam`, `sched_setscheduler` and `sched_setattr`.
#[cfg(target_arch = "x86_64")]
const SCHEDULING_CALLS: [i64; 3] = [142, 144, 314];
#[cfg(not(target_arch = "x86_64"))]
const SCHEDULING_CALLS: [i64; 3] = [118, 119, 274];

/// `setpriority` and `ioprio_set`, each with the value by which it concerns all processes of a user.
#[cfg(target_arch = "x86_64")]
const PRIORITY_CALLS: [(i64, u64); 2] = [(141, 2), (251, 3)];
#[cfg(not(target_arch = "x86_64"))]
const PRIORITY_CALLS: [(i64, u64); 2] = [(140, 2), (30, 3)];

/// Marks the system calls of the x32 ABI, which some kernels have.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

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
    let machine = u16::from_le_bytes([head[18], head[19]]);
    head.starts_with(b"#!") || (length == head.len() && head.starts_with(b"\x7fELF") && machine == MACHINE)
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
    let sandbox = &request.sandbox;
    set_no_new_privs(true).map_err(|error| format!("privileges cannot be given up: {error}"))?;
    let unrestricted = |error: RulesetError| format!("this kernel cannot enforce the sandbox: {error}");
    restrict_access(sandbox, &request.root).map_err(unrestricted)?;
    limit_resources(&sandbox.limits).map_err(|error| format!("a limit cannot be set: {error}"))?;
    let is_needed = sandbox.require || sandbox.network == NetworkAccess::None;
    match refuse_calls(sandbox) {
        Err(error) if is_needed => return Err(format!("this kernel cannot refuse system calls: {error}")),
        _ => {}
    }
    drop_capabilities().map_err(|error| format!("privileges cannot be given up: {error}"))
}

/// Keeps root's hooks from what would open the sandbox: reading other processes, raising limits, loading modules. What
/// concerns files and users stays; Landlock restricts it.
fn drop_capabilities() -> Result<(), Errno> {
    clear_ambient_capability_set()?;
    let held = capabilities(None)?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        for capability in (0..64).map(|number| CapabilitySet::from_bits_retain(1 << number)) {
            // An error means that the kernel has no more of them.
            let Ok(is_in_set) = capability_is_in_bounding_set(capability) else { break };
            if is_in_set && !KEPT.contains(capability) {
                remove_capability_from_bounding_set(capability)?;
            }
        }
    }
    set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::empty(), ..held })
}

/// Restricts files, TCP, and signals and abstract sockets across the border of the sandbox, as far as the kernel can.
/// With `require`, it has to be able to restrict files without gaps.
fn restrict_access(sandbox: &Sandbox, root: &Path) -> Result<(), RulesetError> {
    let mut ruleset = Ruleset::default();
    if sandbox.filesystem != FilesystemAccess::Any {
        let level = if sandbox.require { CompatLevel::HardRequirement } else { CompatLevel::BestEffort };
        ruleset = ruleset.set_compatibility(level).handle_access(AccessFs::from_all(COMPLETE_FILES))?;
        ruleset =
            ruleset.set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(NEWEST))?;
    }
    ruleset = ruleset
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?;
    if sandbox.network == NetworkAccess::None {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let mut created = ruleset.create()?;
    if sandbox.filesystem != FilesystemAccess::Any {
        created = allow_files(created, sandbox, root)?;
    }
    created.restrict_self().map(drop)
}

fn allow_files(
    mut ruleset: RulesetCreated,
    sandbox: &Sandbox,
    root: &Path,
) -> Result<RulesetCreated, RulesetError> {
    let read = AccessFs::from_read(NEWEST);
    let write = AccessFs::from_all(NEWEST);
    let of_workspace = if sandbox.filesystem == FilesystemAccess::Workspace { write } else { read };
    let system = paths::readable().map(|path| (Path::new(path), read));
    let devices =
        paths::DEVICES.iter().map(|path| (Path::new(path), AccessFs::ReadFile | AccessFs::WriteFile));
    let readable = sandbox.read.iter().map(|path| (path.as_path(), read));
    let writable = sandbox.write.iter().map(|path| (path.as_path(), write));
    let all = system.chain(devices).chain(readable).chain(writable).chain([(root, of_workspace)]);
    for (path, access) in all {
        // What is not there needs no rule. What was replaced by a link gets none.
        if let Ok((file, access)) = open(path, root, access) {
            ruleset = ruleset.add_rule(PathBeneath::new(file, access))?;
        }
    }
    Ok(ruleset)
}

/// Opens a path for a rule. No link in the workspace is followed: the workspace could make it lead anywhere.
fn open(
    path: &Path,
    root: &Path,
    access: BitFlags<AccessFs>,
) -> Result<(OwnedFd, BitFlags<AccessFs>), Errno> {
    let resolve = if path.starts_with(root) { ResolveFlags::NO_SYMLINKS } else { ResolveFlags::empty() };
    let file = openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)?;
    let is_directory = FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::Directory;
    let access = if is_directory { access } else { access & AccessFs::from_file(NEWEST) };
    Ok((file, access))
}

/// Refuses system calls that reach what Landlock does not restrict: limits and priorities of other processes; where files are
/// restricted, what processes share outside of all files; without network, sockets of any kind, such as UDP and those of
/// container engines. Pairs of connected sockets stay allowed.
fn refuse_calls(sandbox: &Sandbox) -> Result<(), seccompiler::Error> {
    // A process names itself by 0.
    let is_other = |argument| condition(argument, SeccompCmpOp::Ne, 0);
    let mut calls: Vec<(i64, Vec<SeccompRule>)> = Vec::new();
    // Reading the limits of another process stays allowed.
    let is_change = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    calls.push((LIMIT_CALL, vec![SeccompRule::new(vec![is_other(0)?, is_change])?]));
    for call in SCHEDULING_CALLS {
        calls.push((call, vec![SeccompRule::new(vec![is_other(0)?])?]));
    }
    for (call, of_user) in PRIORITY_CALLS {
        let of_all = condition(0, SeccompCmpOp::Eq, of_user)?;
        calls.push((call, vec![SeccompRule::new(vec![is_other(1)?])?, SeccompRule::new(vec![of_all])?]));
    }
    if sandbox.filesystem != FilesystemAccess::Any {
        calls.extend(SHARED_OBJECT_CALLS.map(|call| (call, Vec::new())));
    }
    if sandbox.network == NetworkAccess::None {
        calls.extend(SOCKET_CALLS.map(|call| (call, Vec::new())));
    }
    let mut rules: BTreeMap<_, _> = calls.into_iter().collect();
    #[cfg(target_arch = "x86_64")]
    rules.extend(rules.clone().into_iter().map(|(call, rules)| (call + X32, rules)));
    let architecture = env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(EACCES), architecture)?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter(&program)
}

/// A condition on an argument of 32 bits.
fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
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
