//! The settings of sandboxes.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use super::{declare::settings, value_types::Size};
use crate::model::{FilesystemAccess, NetworkAccess, ResourceLimits, Sandbox};

settings! {
    /// What the processes of command hooks may do, by the level of the file that configures them.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section SandboxSettings {
        /// Hooks of workspaces. A hook file of a workspace can only restrict its hook further.
        project: LevelSandboxSettings = LevelSandboxSettings::default(),

        /// Hooks of the user's own files.
        user: LevelSandboxSettings = LevelSandboxSettings::default(),

        /// Hooks that an administrator installed.
        managed: LevelSandboxSettings = LevelSandboxSettings::default(),

        /// Program that starts hooks in sandboxes: a `hookyard`; `null` means the running program if it is `hookyard`
        /// itself, and otherwise none.
        #[example = "/usr/bin/hookyard"]
        launcher: Option<PathBuf> = None,
    }
}

settings! {
    /// What the processes of command hooks of one level may do.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section LevelSandboxSettings {
        /// `any` file, `workspace` to read the system's programs and read and write the workspace, or `read_only` to
        /// read both.
        filesystem: FilesystemAccess = FilesystemAccess::Any,

        /// Directories and files that may be read as well, such as those of an interpreter in a home directory.
        #[example = "[/home/alice/.pyenv]"]
        read: Vec<PathBuf> = Vec::new(),

        /// Directories and files that may be written.
        #[example = "[/var/cache/linter]"]
        write: Vec<PathBuf> = Vec::new(),

        /// `any` network, or `none` to refuse all sockets.
        network: NetworkAccess = NetworkAccess::Any,

        /// Limits of each process.
        limits: SandboxLimitSettings = SandboxLimitSettings::default(),

        /// Whether hooks fail where the sandbox cannot be enforced, instead of running with what can be.
        require: bool = false,
    }
}

settings! {
    /// Limits of each process of a command hook.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section SandboxLimitSettings {
        /// Processor time, in whole seconds; `null` means no limit.
        #[example = "30s"]
        cpu: Option<Duration> = None,

        /// Memory for data; `null` means no limit.
        #[example = "1GiB"]
        memory: Option<usize> as Option<Size> = None,

        /// Open files; `null` means no limit.
        #[example = "256"]
        files: Option<NonZeroUsize> = None,

        /// Processes and threads of the user that hooks run as, all others of that user included; `null` means no
        /// limit, and root has none.
        #[example = "512"]
        processes: Option<NonZeroUsize> = None,

        /// Size of a file that a hook writes; `null` means no limit.
        #[example = "64MiB"]
        file_size: Option<usize> as Option<Size> = None,
    }
}

impl LevelSandboxSettings {
    /// The sandbox of the hooks of this level.
    pub(in crate::config) fn sandbox(&self, launcher: Option<&PathBuf>) -> Sandbox {
        let limits = &self.limits;
        Sandbox {
            filesystem: self.filesystem,
            read: self.read.clone(),
            write: self.write.clone(),
            network: self.network,
            limits: ResourceLimits {
                cpu: limits.cpu,
                memory: limits.memory,
                files: limits.files,
                processes: limits.processes,
                file_size: limits.file_size,
            },
            require: self.require,
            launcher: launcher.cloned(),
        }
    }
}
