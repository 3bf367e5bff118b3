//! The `sandbox` of a command handler: how a hook restricts its own process.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use super::{
    super::{Mapping, Value},
    lookup::{ReferenceLookup, ResolvedPath},
    mode::count,
};
use crate::model::{FilesystemAccess, NetworkAccess, ResourceLimits, Sandbox};

/// The keys of a sandbox.
const KEYS: [&str; 5] = ["filesystem", "write", "network", "limits", "require"];

/// The keys of its limits.
const LIMITS: [&str; 5] = ["cpu_seconds", "memory_mib", "files", "processes", "file_size_mib"];

/// The largest number of MiB: a tebibyte.
const MOST_MIB: usize = 1 << 20;

/// The longest processor time, in seconds.
const LONGEST_TIME: usize = 366 * 24 * 60 * 60;

/// The sandbox of a handler, or `None` if anything about it is wrong.
pub(super) fn read(value: &Value<'_>, resolver: &dyn ReferenceLookup) -> Option<Arc<Sandbox>> {
    let keys = value.mapping()?;
    keys.allow_only(&KEYS);
    let filesystem = match keys.get("filesystem") {
        Some(value) => value.choice(&FilesystemAccess::ALL.map(|access| (access.as_str(), access))),
        None => Some(FilesystemAccess::default()),
    };
    let network = match keys.get("network") {
        Some(value) => value.choice(&NetworkAccess::ALL.map(|access| (access.as_str(), access))),
        None => Some(NetworkAccess::default()),
    };
    let require = match keys.get("require") {
        Some(value) => value.flag(),
        None => Some(false),
    };
    let limits = match keys.get("limits") {
        Some(value) => value.mapping().and_then(|limits| read_limits(&limits)),
        None => Some(ResourceLimits::default()),
    };
    let write = match keys.get("write") {
        Some(value) if filesystem == Some(FilesystemAccess::Any) => {
            let message = "`write` has no effect without a restriction of files";
            value.error("sandbox", message, "write `filesystem: read_only` as well");
            None
        }
        Some(value) => {
            value.list().and_then(|paths| paths.iter().map(|path| inside(path, resolver)).collect())
        }
        None => Some(Vec::new()),
    };
    Some(Arc::new(Sandbox {
        filesystem: filesystem?,
        read: Vec::new(),
        write: write?,
        network: network?,
        limits: limits?,
        require: require?,
        launcher: None,
    }))
}

fn inside(value: &Value<'_>, resolver: &dyn ReferenceLookup) -> Option<std::path::PathBuf> {
    match resolver.directory(value.text()?) {
        ResolvedPath::Found(path) => Some(path),
        ResolvedPath::Missing(path, why) => {
            value.warn(
                "sandbox",
                format!("`write`: {why}"),
                "create it; until then nothing is written there",
            );
            Some(path)
        }
        ResolvedPath::Refused(why) => {
            value.error("sandbox", format!("`write`: {why}"), "name a directory inside the workspace");
            None
        }
    }
}

fn read_limits(limits: &Mapping<'_>) -> Option<ResourceLimits> {
    limits.allow_only(&LIMITS);
    let optional = |key, most| match limits.get(key) {
        Some(value) => count(&value, most).map(Some),
        None => Some(None),
    };
    let cpu = optional("cpu_seconds", LONGEST_TIME);
    let memory = optional("memory_mib", MOST_MIB);
    let files = optional("files", MOST_MIB);
    let processes = optional("processes", MOST_MIB);
    let file_size = optional("file_size_mib", MOST_MIB);
    Some(ResourceLimits {
        cpu: cpu?.map(|seconds| Duration::from_secs(seconds.get() as u64)),
        memory: memory?.map(bytes),
        files: files?,
        processes: processes?,
        file_size: file_size?.map(bytes),
    })
}

fn bytes(mib: NonZeroUsize) -> usize {
    mib.get() << 20
}
