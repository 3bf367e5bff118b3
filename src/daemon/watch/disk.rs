//! What the watching asks of the disk: what stands at a path, and how lately something changed. Refuses to read a file.

use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, SystemTime},
};

use crate::config::{Entry, Standing, Watches};

/// How much earlier than the clock a file system may say that something changed: it looks at its clock only a few
/// hundred times a second.
const COARSENESS: Duration = Duration::from_millis(50);

/// What stands at a path.
pub(super) fn standing(path: &Path) -> Standing {
    let Ok(metadata) = path.symlink_metadata() else { return Standing::Nothing };
    if metadata.is_symlink() {
        return path.read_link().map_or(Standing::Nothing, Standing::Link);
    }
    if metadata.is_dir() { Standing::Directory } else { Standing::File }
}

/// Whether something that is watched may have changed since: an entry, or which entries there are.
pub(super) fn has_changed_since(watches: &Watches, since: SystemTime) -> bool {
    let since = since.checked_sub(COARSENESS).unwrap_or(SystemTime::UNIX_EPOCH);
    let is_late = |path: &Path| path.symlink_metadata().is_ok_and(|found| changed_at(&found) >= since);
    watches.directories.iter().any(|(directory, entries)| {
        is_late(directory)
            || entries.iter().any(|entry| match entry {
                Entry::Named(name) => is_late(&directory.join(name)),
                Entry::HookFiles | Entry::Agents => {
                    let all = directory.read_dir().into_iter().flatten().flatten();
                    all.filter(|found| Entry::of(&found.file_name()).any(|kind| kind == *entry))
                        .any(|found| is_late(&found.path()))
                }
            })
    })
}

/// When an entry was changed, moved or given other rights.
fn changed_at(found: &Metadata) -> SystemTime {
    let seconds = Duration::from_secs(u64::try_from(found.ctime()).unwrap_or(0));
    let rest = Duration::from_nanos(u64::try_from(found.ctime_nsec()).unwrap_or(0));
    SystemTime::UNIX_EPOCH + seconds + rest
}
