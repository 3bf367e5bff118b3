//! Sandboxes of command hooks: a launcher that restricts itself and then becomes the hook's program.
//!
//! ```text
//! hookyard ──posix_spawn──▶ hookyard __sandbox 1 --root … -- PROGRAM ARG… ──restrict──▶ exec PROGRAM
//!                                                                   └── refused ──▶ message on stderr, SIGKILL
//! ```
//!
//! A launcher that fails kills itself, so that none of its exit codes can be taken for a verdict of the hook.
//!
//! | file | role |
//! | --- | --- |
//! | `arguments` | the launcher's command line, both ways; pure |
//! | `launcher` | the launcher: restrictions of the platform, then `exec` |
//! | `paths` | the directories of `PATH` that a restricted hook may read |
//! | `private_temp` | temporary directories of sandboxed hooks |

mod arguments;
mod launcher;
mod paths;
mod private_temp;

pub(super) use arguments::launched;
pub use launcher::launch_if_asked;
pub(super) use launcher::refusal;
pub(super) use private_temp::PrivateTemp;
