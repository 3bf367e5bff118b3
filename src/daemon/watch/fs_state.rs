//! Looks at the file system for the watcher: what is at a path, and whether it changed since a time.

use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt,
    path::Path,
    time::{Duration, SystemTime},
};

use crate::config::{PathState, WatchPlan, WatchedEntry};

/// How much earlier than the real time the timestamp of a change may be: file systems use a clock that ticks only a few
/// hundred times a second.
const COARSENESS: Duration = Duration::from_millis(50);

/// What is at a path, without following a symbolic link.
pub(super) fn path_state(path: &Path) -> PathState {
    let Ok(metadata) = path.symlink_metadata() else { return PathState::Nothing };
    if metadata.is_symlink() {
        return path.read_link().map_or(PathState::Nothing, PathState::Link);
    }
    if metadata.is_dir() { PathState::Directory } else { PathState::File }
}

/// Whether a watched entry, or the set of entries of a watched directory, may have changed since a time.
pub(super) fn has_changed_since(watches: &WatchPlan, since: SystemTime) -> bool {
    // After the clock was put back, changes are older than what they come after.
    let was_put_back = SystemTime::now() < since;
    was_put_back || has_entry_since(watches, since)
}

fn has_entry_since(watches: &WatchPlan, since: SystemTime) -> bool {
    let since = since.checked_sub(COARSENESS).unwrap_or(SystemTime::UNIX_EPOCH);
    let is_late = |path: &Path| path.symlink_metadata().is_ok_and(|found| changed_at(&found) >= since);
    watches.directories.iter().any(|(directory, entries)| {
        is_late(directory)
            || entries.iter().any(|entry| match entry {
                WatchedEntry::Named(name) => is_late(&directory.join(name)),
                WatchedEntry::HookFiles | WatchedEntry::Agents | WatchedEntry::SettingsFiles => {
                    let all = directory.read_dir().into_iter().flatten().flatten();
                    all.filter(|found| WatchedEntry::of(&found.file_name()).any(|kind| kind == *entry))
                        .any(|found| is_late(&found.path()))
                }
            })
    })
}

/// The ctime: when an entry was last changed, moved or given other permissions.
fn changed_at(found: &Metadata) -> SystemTime {
    let seconds = Duration::from_secs(u64::try_from(found.ctime()).unwrap_or(0));
    let rest = Duration::from_nanos(u64::try_from(found.ctime_nsec()).unwrap_or(0));
    SystemTime::UNIX_EPOCH + seconds + rest
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
        os::unix::fs::symlink,
    };

    use super::*;

    #[test]
    fn a_path_is_inspected_without_following_it() {
        let here = tempfile::tempdir().unwrap();
        fs::write(here.path().join("file"), "").unwrap();
        symlink("file", here.path().join("link")).unwrap();
        assert_eq!(path_state(here.path()), PathState::Directory);
        assert_eq!(path_state(&here.path().join("file")), PathState::File);
        assert_eq!(path_state(&here.path().join("link")), PathState::Link("file".into()));
        assert_eq!(path_state(&here.path().join("nothing")), PathState::Nothing);
    }

    #[test]
    fn after_the_clock_was_put_back_anything_may_have_changed() {
        let watches = WatchPlan { directories: BTreeMap::new(), absent: BTreeSet::new() };
        let now = SystemTime::now();
        assert!(!has_changed_since(&watches, now));
        assert!(has_changed_since(&watches, now + Duration::from_hours(1)));
    }

    #[test]
    fn only_watched_entries_count_as_changes() {
        let here = tempfile::tempdir().unwrap();
        fs::write(here.path().join("a.yaml"), "").unwrap();
        fs::write(here.path().join("notes"), "").unwrap();
        let at = |path: &str| changed_at(&here.path().join(path).symlink_metadata().unwrap());
        let between = |entry: WatchedEntry| {
            let entries = BTreeSet::from([entry]);
            let directories = BTreeMap::from([(here.path().to_owned(), entries)]);
            let watches = WatchPlan { directories, absent: BTreeSet::new() };
            has_entry_since(&watches, at(".").max(at("a.yaml")) + COARSENESS + Duration::from_millis(1))
        };
        assert!(!between(WatchedEntry::HookFiles));
        // Written in place, later than the directory by more than the clock is coarse.
        while at("notes") <= at(".").max(at("a.yaml")) + COARSENESS + Duration::from_millis(1) {
            fs::write(here.path().join("notes"), "x").unwrap();
        }
        assert!(!between(WatchedEntry::HookFiles) && !between(WatchedEntry::Named("a.yaml".into())));
        assert!(between(WatchedEntry::Named("notes".into())));
    }
}
