//! Sandboxes by Landlock and seccomp, and what a hook in one may read and use of the system, so that interpreters run.

use std::{collections::BTreeMap, env, os::fd::OwnedFd, path::Path};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2},
    io::Errno,
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

use super::super::KernelSandbox;
use crate::model::{FilesystemAccess, NetworkAccess, Sandbox};

/// Programs and libraries.
pub(crate) const PROGRAM_DIRECTORIES: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store"];

/// What libraries and interpreters read when they start. Not all of `/etc`: it has keys and tokens.
const CONFIGURATION: [&str; 34] = [
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls",
    "/etc/profile",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];

/// The state of the kernel and of processes. What `/proc` tells only those who may trace a process, such as its
/// environment, stays closed for all processes outside of the sandbox.
const KERNEL: [&str; 5] = [
    "/proc",
    "/run/systemd/resolve",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
];

/// Devices without content of others.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

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

/// Asks the kernel what it can restrict.
pub(crate) fn kernel_sandbox() -> KernelSandbox {
    let has_files = |abi| {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        ruleset.handle_access(AccessFs::from_all(abi)).and_then(Ruleset::create).is_ok()
    };
    let ruleset = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    KernelSandbox {
        files: has_files(ABI::V1),
        truncation: has_files(COMPLETE_FILES),
        tcp: ruleset().handle_access(AccessNet::from_all(ABI::V4)).and_then(Ruleset::create).is_ok(),
        border: ruleset().scope(Scope::Signal | Scope::AbstractUnixSocket).and_then(Ruleset::create).is_ok(),
        sockets: true,
    }
}

/// Whether a file that begins so is a program of this machine.
pub(crate) fn is_program(head: &[u8]) -> bool {
    head.starts_with(b"\x7fELF")
        && head.get(18..20).is_some_and(|machine| machine == MACHINE.to_le_bytes().as_slice())
}

/// Gives up what opens sandboxes, and restricts files, TCP, and signals and abstract sockets across the border of the
/// sandbox, as far as the kernel can.
///
/// Returns what could not be done.
pub(crate) fn restrict_access(sandbox: &Sandbox, root: &Path) -> Result<(), String> {
    set_no_new_privs(true).map_err(|error| format!("privileges cannot be given up: {error}"))?;
    restrict_by_landlock(sandbox, root)
        .map_err(|error| format!("this kernel cannot enforce the sandbox: {error}"))
}

/// Refuses system calls that reach what is not restricted otherwise, and gives up the rights of root that would.
///
/// Returns what could not be done.
pub(crate) fn restrict_calls(sandbox: &Sandbox) -> Result<(), String> {
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
fn restrict_by_landlock(sandbox: &Sandbox, root: &Path) -> Result<(), RulesetError> {
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
    let system = PROGRAM_DIRECTORIES
        .into_iter()
        .chain(CONFIGURATION)
        .chain(KERNEL)
        .map(|path| (Path::new(path), read));
    let devices = DEVICES.iter().map(|path| (Path::new(path), AccessFs::ReadFile | AccessFs::WriteFile));
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
