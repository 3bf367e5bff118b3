//! What a kernel can restrict of a process.

use serde::Serialize;

/// What this kernel can restrict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "each is a feature of the kernel of its own")]
pub(crate) struct KernelSandbox {
    /// Reading and writing of files.
    pub(crate) files: bool,
    /// Truncation of files as well.
    pub(crate) truncation: bool,
    /// TCP.
    pub(crate) tcp: bool,
    /// Signals to processes and connections to abstract sockets outside.
    pub(crate) border: bool,
    /// Sockets as a whole, by refusing the calls that make them.
    #[serde(skip)]
    pub(crate) sockets: bool,
}
