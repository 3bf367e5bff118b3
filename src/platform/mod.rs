//! What systems do in different ways: the only place that names what is Linux's own.
//!
//! There are two forms with the same items. `linux` is that of Linux. `portable` is that of every other Unix, and of Linux
//! where `--cfg hookyard_portable` asks for it, so that it can be tested. No other module asks which system it is on.
//!
//! | item | Linux | portable |
//! | --- | --- | --- |
//! | [`ExitWatch`], [`ProcessHandle`] | a pidfd | a thread that waits for the child; a look at the process |
//! | [`process`] and its kin | `/proc` | the crate `sysinfo` |
//! | [`adopt_orphans`], [`hide_memory`], [`HookCgroup`] | the kernel does it | refused; callers say what is lost |
//! | [`DirectoryWatcher`] | inotify | looks at the directories again and again |
//! | [`OpenBeneath`] | `openat2` | name by name, following no link |
//! | [`restrict_access`], [`kernel_sandbox`] | Landlock, seccomp | refused |
//! | [`peer_user`], [`peer_process`], [`has_peer_ended`] | `SO_PEERCRED`, `SO_PEERPIDFD` | `getpeereid` or what the system has in its place |
//! | [`processor_model`], [`memory_bytes`] | `/proc` | the crate `sysinfo` |
//! | [`unnamed_file`] | a memfd | a file whose name is removed |
//! | [`address_of`] | also abstract addresses | paths |

mod beneath;
mod entries;
#[cfg(feature = "daemon")]
mod fs_event;
mod kernel_sandbox;
#[cfg(all(target_os = "linux", not(hookyard_portable)))]
mod linux;
#[cfg(not(all(target_os = "linux", not(hookyard_portable))))]
mod portable;
mod process_entry;

pub(crate) use beneath::{LastLink, OpenBeneath};
pub(crate) use entries::{READ, open_entry, type_of};
#[cfg(feature = "daemon")]
pub(crate) use fs_event::{FsEvent, WatchResult};
pub(crate) use kernel_sandbox::KernelSandbox;
#[cfg(all(target_os = "linux", not(hookyard_portable)))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", not(hookyard_portable))))]
pub(crate) use portable::*;
pub(crate) use process_entry::{OwnUsage, PidScope, ProcessEntry, ScopeError, raw};
