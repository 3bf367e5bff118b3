//! A cgroup for the hooks of a daemon.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::{
    fs::{Access, access, getxattr},
    process::geteuid,
};

/// What the names of these cgroups begin with; the process id follows.
const CGROUP_NAME: &str = "hookyard-";

/// The file with the processes of a cgroup.
const CGROUP_MEMBERS: &str = "cgroup.procs";

/// The file that ends all of them.
const CGROUP_KILL: &str = "cgroup.kill";

/// How often an emptied cgroup is tried to be removed: a killed process takes a moment to be gone.
const MAX_REMOVALS: usize = 200;

/// Between two attempts.
const REMOVAL_PAUSE: Duration = Duration::from_millis(5);

/// A cgroup of the daemon's own, by which the kernel ends everything that hooks left when it stops.
///
/// The daemon moves into it once, before the first hook: what it starts is in it as well, whatever it does to its
/// environment or its process group. Moving each hook would cost it some 15 ms. Needs a cgroup v2 that is delegated to
/// this user or service.
#[derive(Debug)]
pub(crate) struct HookCgroup {
    /// The one that this process was in before.
    parent: PathBuf,
    own: PathBuf,
}

impl HookCgroup {
    /// Moves this process into a cgroup of its own, and ends what a daemon left that was killed.
    ///
    /// Returns nothing where no cgroup is delegated.
    pub(crate) fn enter() -> Option<Self> {
        let parent = current()?;
        if !is_delegated(&parent) {
            return None;
        }
        let leftovers = end_leftovers(&parent);
        if leftovers > 0 {
            tracing::warn!(processes = leftovers, "ended processes of hooks that a killed daemon had left");
        }
        let own = parent.join(format!("{CGROUP_NAME}{}", std::process::id()));
        let entered = fs::create_dir(&own).and_then(|()| {
            fs::metadata(own.join(CGROUP_KILL))?;
            fs::write(own.join(CGROUP_MEMBERS), std::process::id().to_string())
        });
        match entered {
            Ok(()) => Some(Self { parent, own }),
            Err(error) => {
                tracing::debug!(%error, cgroup = %own.display(), "no cgroup for hooks");
                let _ = fs::remove_dir(&own);
                None
            }
        }
    }
}

impl Drop for HookCgroup {
    /// Moves this process back and ends everything that is left in the cgroup. Blocks its thread for up to a second.
    fn drop(&mut self) {
        if let Err(error) = fs::write(self.parent.join(CGROUP_MEMBERS), std::process::id().to_string()) {
            tracing::warn!(%error, "processes that hooks left are not ended: the cgroup cannot be left");
            return;
        }
        let processes = end_cgroup(&self.own);
        if processes > 0 {
            tracing::warn!(processes, "ended processes that hooks had left");
        }
    }
}

/// Whether a process is in the cgroup that a daemon made for itself and its hooks. Nobody else enters it, so such a process
/// was started by a hook, whatever it has done to its parents, its group and its environment.
pub(crate) fn is_in_cgroup_of(daemon: i32, pid: i32) -> bool {
    let Some(own) = path_of(&daemon.to_string()) else { return false };
    let name = format!("{CGROUP_NAME}{daemon}");
    let is_made = Path::new(&own).file_name().is_some_and(|last| last == name.as_str());
    is_made && path_of(&pid.to_string()).is_some_and(|path| Path::new(&path).starts_with(&own))
}

/// The cgroup v2 of a process, as a path below the mount.
fn path_of(process: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("0::/")).map(str::to_owned)
}

/// The directory of this process's cgroup v2.
fn current() -> Option<PathBuf> {
    let path = path_of("self")?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find_map(mount_point)?;
    Some(mount.join(path))
}

/// The mount point in a line of `mountinfo`, if it is that of the whole cgroup v2.
fn mount_point(line: &str) -> Option<PathBuf> {
    let (mount, source) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(3);
    let is_whole = source.starts_with("cgroup2 ") && fields.next()? == "/";
    is_whole.then(|| fields.next().map(PathBuf::from)).flatten()
}

/// Whether this process may divide a cgroup: systemd says so by an attribute, and to other users than root by its owner.
fn is_delegated(cgroup: &Path) -> bool {
    let is_marked = ["trusted.delegate", "user.delegate"].iter().any(|name| {
        let mut value = [0_u8; 8];
        getxattr(cgroup, *name, &mut value).is_ok_and(|length| &value[..length.min(8)] == b"1")
    });
    let may_write = |path: PathBuf| access(path, Access::WRITE_OK).is_ok();
    is_marked
        || (!geteuid().is_root() && may_write(cgroup.to_owned()) && may_write(cgroup.join(CGROUP_MEMBERS)))
}

/// Ends what is in cgroups of daemons that are gone. A daemon is in its own cgroup until it has stopped.
fn end_leftovers(parent: &Path) -> usize {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let owned = entries.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.strip_prefix(CGROUP_NAME)?.parse().ok()?;
        (!members(&entry.path()).contains(&pid)).then(|| entry.path())
    });
    owned.map(|cgroup| end_cgroup(&cgroup)).sum()
}

/// Ends all processes of a cgroup and removes it. Returns how many there were.
fn end_cgroup(cgroup: &Path) -> usize {
    let count = members(cgroup).len();
    if let Err(error) = fs::write(cgroup.join(CGROUP_KILL), "1") {
        tracing::warn!(%error, cgroup = %cgroup.display(), "processes that hooks left are not ended");
    }
    for _ in 0..MAX_REMOVALS {
        match fs::remove_dir(cgroup) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(REMOVAL_PAUSE),
            _ => break,
        }
    }
    count
}

fn members(cgroup: &Path) -> Vec<u32> {
    let text = fs::read_to_string(cgroup.join(CGROUP_MEMBERS)).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_of_the_whole_hierarchy_is_found() {
        let line = "29 22 0:25 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw";
        assert_eq!(mount_point(line), Some("/sys/fs/cgroup".into()));
        for other in [
            "29 22 0:25 /sub /mnt rw - cgroup2 cgroup2 rw",
            "29 22 0:25 / /proc rw - proc proc rw",
            "",
            "a - b",
        ] {
            assert_eq!(mount_point(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_not_delegated_is_left_alone() {
        let plain = tempfile::tempdir().unwrap();
        assert!(!is_delegated(plain.path()));
        assert!(!is_delegated(Path::new("/nonexistent")));
    }
}
