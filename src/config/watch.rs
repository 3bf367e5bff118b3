//! Which directories to watch for a workspace, and which of their entries can change its hooks.
//! It performs no I/O: the caller provides the state of each path.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ffi::{OsStr, OsString},
    ops::ControlFlow,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

use super::{
    DialectSelection,
    discover::{self, WORKSPACE_DIRECTORY},
};
use crate::{
    dialect::{NativeDialect, SettingsLocation, natives},
    model::Dialect,
};

/// The most symbolic links that are followed for one path, as in Linux.
const MOST_LINKS: usize = 40;

/// What is at a path, without following a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathState {
    /// A directory.
    Directory,
    /// A symbolic link and its target.
    Link(PathBuf),
    /// Anything else.
    File,
    /// Nothing, or nothing accessible.
    Nothing,
}

/// Entries of a directory whose changes matter.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum WatchedEntry {
    /// The entry of this name.
    Named(OsString),
    /// Entries that are hook files by their names.
    HookFiles,
    /// Entries that are agents by their names.
    Agents,
    /// Entries that are settings files of an agent by their names, where it has a directory of them.
    SettingsFiles,
}

/// A workspace, as far as it determines what to watch.
#[derive(Debug)]
pub(crate) struct WatchedWorkspace<'a> {
    /// Its directory.
    pub(crate) root: &'a Path,
    /// The directories around it whose hook files apply in it too.
    pub(crate) around: &'a [PathBuf],
    /// The home directory with the user's own hooks.
    pub(crate) home: Option<&'a Path>,
    /// The directory of the machine's own configuration.
    pub(crate) system: &'a Path,
    /// The dialects whose hooks it runs.
    pub(crate) dialects: &'a DialectSelection,
    /// The files that were examined when it was loaded, and those that were missing.
    pub(crate) files: &'a [PathBuf],
    /// The files that decide whether its hooks are trusted.
    pub(crate) trust: &'a [PathBuf],
}

/// What to watch for a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WatchPlan {
    /// Directories without symbolic links, each with the entries that matter. For a path that does not exist, it has
    /// the nearest directory above, but none above the workspace, the home or the system directory.
    pub(crate) directories: BTreeMap<PathBuf, BTreeSet<WatchedEntry>>,
    /// Which of these three directories do not exist: they can only be polled for.
    pub(crate) absent: BTreeSet<PathBuf>,
}

/// A directory below which paths are followed.
struct BaseDirectory<'a> {
    given: &'a Path,
    /// Without symbolic links.
    real: PathBuf,
    reach: LinkReach,
}

/// How far links are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkReach {
    /// Inside the directory: what a link outside of it leads to is never read.
    Inside,
    /// Anywhere, as for the dotfiles of a user.
    Anywhere,
}

impl BaseDirectory<'_> {
    /// Whether a directory may be watched that a path below the base leads to.
    fn may_watch(&self, directory: &Path) -> bool {
        self.reach == LinkReach::Anywhere || directory.starts_with(&self.real)
    }
}

impl WatchedEntry {
    /// The kinds of entry that a name may stand for.
    pub(crate) fn of(name: &OsStr) -> impl Iterator<Item = Self> {
        let as_hook = discover::is_hook_file(name).then_some(Self::HookFiles);
        let as_agent = is_agent(name).then_some(Self::Agents);
        let as_settings = SettingsLocation::takes(name).then_some(Self::SettingsFiles);
        std::iter::once(Self::Named(name.to_owned())).chain(as_hook).chain(as_agent).chain(as_settings)
    }
}

fn is_agent(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    !bytes.starts_with(b".") && bytes.ends_with(b".md")
}

impl WatchPlan {
    /// What to watch for a workspace. `state_of` returns what is at a path.
    pub(crate) fn of<'a>(workspace: &WatchedWorkspace<'a>, state_of: &dyn Fn(&Path) -> PathState) -> Self {
        let mut watches = Self::default();
        let root = watches.base(state_of, workspace.root, LinkReach::Inside);
        let home = workspace.home.and_then(|home| watches.base(state_of, home, LinkReach::Anywhere));
        let system = watches.base(state_of, workspace.system, LinkReach::Anywhere);
        let around = workspace.around.iter();
        let outer: Vec<_> =
            around.filter_map(|outer| watches.base(state_of, outer, LinkReach::Inside)).collect();
        for root in root.iter().chain(&outer) {
            let own = Path::new(WORKSPACE_DIRECTORY);
            watches.follow(state_of, root, &own.join("settings.yaml"));
            for (directory, entry) in [("hooks", WatchedEntry::HookFiles), ("agents", WatchedEntry::Agents)] {
                if let Some(real) = watches.follow(state_of, root, &own.join(directory)) {
                    watches.add(&real, entry);
                }
            }
        }
        let selected: Vec<_> = natives().filter(|native| workspace.dialects.has(native.name())).collect();
        for agents in selected.iter().filter_map(|native| native.plugins().agents()) {
            for base in root.iter().chain(&outer).chain(&home) {
                if let Some(real) = watches.follow(state_of, base, Path::new(agents)) {
                    watches.add(&real, WatchedEntry::Agents);
                }
            }
        }
        for file in selected.into_iter().flat_map(NativeDialect::files) {
            let (bases, path): (Vec<_>, _) = match file.location {
                SettingsLocation::Workspace(path) => (root.iter().chain(&outer).collect(), path),
                SettingsLocation::Home(path) => (home.iter().collect(), path),
                SettingsLocation::System(path) => (system.iter().collect(), path),
            };
            for base in bases {
                match file.location.directory() {
                    None => drop(watches.follow(state_of, base, Path::new(path))),
                    Some(directory) => {
                        if let Some(real) = watches.follow(state_of, base, Path::new(directory)) {
                            watches.add(&real, WatchedEntry::SettingsFiles);
                        }
                    }
                }
            }
        }
        for file in workspace.files {
            let bases = [&root, &home, &system].into_iter().flatten().chain(&outer);
            let inside = bases.filter_map(|base| Some((base, file.strip_prefix(base.given).ok()?)));
            if let Some((base, path)) = inside.min_by_key(|(_, path)| path.components().count()) {
                watches.follow(state_of, base, path);
            }
        }
        watches.follow_trust(state_of, workspace);
        watches
    }

    /// Adds the files that decide whether hooks are trusted, wherever they are.
    fn follow_trust(&mut self, state_of: &dyn Fn(&Path) -> PathState, workspace: &WatchedWorkspace<'_>) {
        for file in workspace.trust {
            let is_inside = file != workspace.root && file.starts_with(workspace.root);
            let above = if is_inside { Some(workspace.root) } else { file.parent() };
            if let Some(above) = above
                && let Some(base) = self.base(state_of, above, LinkReach::Inside)
                && let Ok(path) = file.strip_prefix(above)
            {
                self.follow(state_of, &base, path);
            }
        }
    }

    /// The base directory of a path, or `None` if it does not exist, which is noted.
    fn base<'a>(
        &mut self,
        state_of: &dyn Fn(&Path) -> PathState,
        given: &'a Path,
        reach: LinkReach,
    ) -> Option<BaseDirectory<'a>> {
        let real = walk(state_of, Path::new("/"), given, |_, _, _| ControlFlow::Continue(()));
        if real.is_none() {
            self.absent.insert(given.to_owned());
        }
        Some(BaseDirectory { given, real: real?, reach })
    }

    fn add(&mut self, directory: &Path, entry: WatchedEntry) {
        self.directories.entry(directory.to_owned()).or_default().insert(entry);
    }

    /// Adds the entries along a path, whose changes can change where it leads. Returns the directory it leads to, if
    /// that may be watched.
    fn follow(
        &mut self,
        state_of: &dyn Fn(&Path) -> PathState,
        base: &BaseDirectory<'_>,
        path: &Path,
    ) -> Option<PathBuf> {
        let end = walk(state_of, &base.real, path, |at, name, found| {
            let within = at.starts_with(&base.real);
            // Above the base, nothing is watched: a link that leads there may lead back.
            if !within && base.real.starts_with(at) {
                return ControlFlow::Continue(());
            }
            if !base.may_watch(at) {
                return ControlFlow::Break(());
            }
            // Outside the base, the watch of a directory itself reports its removal.
            if within || *found != PathState::Directory {
                self.add(at, WatchedEntry::Named(name.to_owned()));
            }
            ControlFlow::Continue(())
        });
        end.filter(|end| base.may_watch(end) && (end == &base.real || !base.real.starts_with(end)))
    }
}

/// Follows a path from a directory, through symbolic links, and calls `visit` for each entry. Returns the directory at
/// its end without symbolic links, or `None` if the path ends before.
fn walk(
    state_of: &dyn Fn(&Path) -> PathState,
    from: &Path,
    path: &Path,
    mut visit: impl FnMut(&Path, &OsStr, &PathState) -> ControlFlow<()>,
) -> Option<PathBuf> {
    let mut at = from.to_owned();
    let mut ahead = VecDeque::from(names(path));
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            at.pop();
            continue;
        }
        let found = state_of(&at.join(&name));
        if visit(&at, &name, &found).is_break() {
            return None;
        }
        match found {
            PathState::Directory => at.push(name),
            PathState::Link(target) if links < MOST_LINKS => {
                links += 1;
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                names(&target).into_iter().rev().for_each(|name| ahead.push_front(name));
            }
            PathState::Link(_) | PathState::File | PathState::Nothing => return None,
        }
    }
    Some(at)
}

fn names(path: &Path) -> Vec<OsString> {
    let named = path.components().filter(|c| matches!(c, Component::Normal(_) | Component::ParentDir));
    named.map(|component| component.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DialectName;

    /// A disk: directories end with `/`, links have ` -> `, the rest are files.
    fn disk(lines: &[&str]) -> impl Fn(&Path) -> PathState {
        let mut all = BTreeMap::new();
        for line in lines {
            let (path, state_of) = match line.split_once(" -> ") {
                Some((path, target)) => (path, PathState::Link(target.into())),
                None if line.ends_with('/') => (line.trim_end_matches('/'), PathState::Directory),
                None => (*line, PathState::File),
            };
            for above in Path::new(path).ancestors().skip(1) {
                all.entry(above.to_owned()).or_insert(PathState::Directory);
            }
            all.insert(PathBuf::from(path), state_of);
        }
        move |path| all.get(path).cloned().unwrap_or(PathState::Nothing)
    }

    fn watches(dialect: DialectName, files: &[&str], lines: &[&str]) -> WatchPlan {
        let files: Vec<_> = files.iter().map(PathBuf::from).collect();
        let workspace = WatchedWorkspace {
            root: Path::new("/w/shop"),
            around: &[],
            home: Some(Path::new("/home/u")),
            system: Path::new("/etc"),
            dialects: &DialectSelection::Only(vec![dialect]),
            files: &files,
            trust: &[],
        };
        WatchPlan::of(&workspace, &disk(lines))
    }

    /// Whether a change of this path matters.
    fn has(watches: &WatchPlan, path: &str) -> bool {
        let path = Path::new(path);
        let directory = path.parent().unwrap();
        let name = path.file_name().unwrap();
        let entries = watches.directories.get(directory);
        entries.is_some_and(|entries| WatchedEntry::of(name).any(|entry| entries.contains(&entry)))
    }

    fn directories(watches: &WatchPlan) -> Vec<&str> {
        watches.directories.keys().map(|path| path.to_str().unwrap()).collect()
    }

    const OWN: DialectName = DialectName::OpenHarness;
    const CLAUDE: DialectName = DialectName::Claude;

    #[test]
    fn hook_files_settings_and_agents_matter_and_nothing_else() {
        let lines = ["/w/shop/.openharness/hooks/", "/w/shop/.openharness/agents/", "/home/u/", "/etc/"];
        let found = watches(OWN, &[], &lines);
        for path in ["hooks/a.yaml", "hooks/b.yml", "agents/x.md", "settings.yaml", "hooks", "agents"] {
            assert!(has(&found, &format!("/w/shop/.openharness/{path}")), "{path}");
        }
        assert!(has(&found, "/w/shop/.openharness"));
        for path in ["src", ".openharness/log", ".openharness/hooks/.a.yaml.swp", ".openharness/hooks/a.sh"] {
            assert!(!has(&found, &format!("/w/shop/{path}")), "{path}");
        }
        let all =
            ["/w/shop", "/w/shop/.openharness", "/w/shop/.openharness/agents", "/w/shop/.openharness/hooks"];
        assert_eq!(directories(&found), all);
        assert!(found.absent.is_empty());
    }

    #[test]
    fn the_nearest_directory_above_an_absent_path_is_watched() {
        let found = watches(CLAUDE, &[], &["/w/shop/", "/home/u/", "/etc/"]);
        assert_eq!(directories(&found), ["/etc", "/home/u", "/w/shop"]);
        assert!(has(&found, "/w/shop/.openharness") && has(&found, "/w/shop/.claude"));
        assert!(has(&found, "/home/u/.claude") && has(&found, "/etc/claude-code"));
        let found = watches(CLAUDE, &[], &["/w/shop/.claude/", "/home/u/", "/etc/"]);
        assert!(has(&found, "/w/shop/.claude/settings.json"));
        assert!(has(&found, "/w/shop/.claude/settings.local.json"));
    }

    #[test]
    fn an_absent_workspace_is_polled_for() {
        let found = watches(OWN, &["/w/shop/.openharness/hooks/a.yaml"], &["/w/other/", "/home/u/", "/etc/"]);
        assert!(found.directories.is_empty());
        assert_eq!(found.absent, BTreeSet::from([PathBuf::from("/w/shop")]));
    }

    #[test]
    fn texts_of_agents_matter_where_their_hooks_are_read() {
        let lines = ["/w/shop/.claude/agents/", "/home/u/.claude/agents/", "/etc/"];
        let found = watches(CLAUDE, &[], &lines);
        for place in ["/w/shop", "/home/u"] {
            assert!(has(&found, &format!("{place}/.claude/agents/reviewer.md")), "{place}");
            assert!(!has(&found, &format!("{place}/.claude/agents/notes.txt")), "{place}");
        }
        assert!(!has(&watches(OWN, &[], &lines), "/w/shop/.claude/agents/reviewer.md"));
    }

    #[test]
    fn files_that_were_read_matter_wherever_they_are() {
        let files = ["/w/shop/prompts/ask.md", "/w/shop/later/x.md", "/elsewhere/y"];
        let lines = ["/w/shop/prompts/ask.md", "/home/u/", "/etc/", "/elsewhere/y"];
        let found = watches(OWN, &files, &lines);
        assert!(has(&found, "/w/shop/prompts/ask.md") && !has(&found, "/w/shop/prompts/b.md"));
        assert!(has(&found, "/w/shop/later") && has(&found, "/w/shop/prompts"));
        assert!(!has(&found, "/elsewhere/y"));
    }

    #[test]
    fn a_link_in_the_workspace_is_followed_within_it_only() {
        let lines = [
            "/w/shop/.claude/settings.json -> ../config/claude.json",
            "/w/shop/config/claude.json",
            "/w/shop/.claude/settings.local.json -> /secret/claude.json",
            "/secret/claude.json",
            "/home/u/",
            "/etc/",
        ];
        let found = watches(CLAUDE, &[], &lines);
        assert!(has(&found, "/w/shop/.claude/settings.json") && has(&found, "/w/shop/config/claude.json"));
        assert!(has(&found, "/w/shop/.claude/settings.local.json"));
        assert!(found.directories.keys().all(|path| !path.starts_with("/secret") && path != Path::new("/w")));
    }

    #[test]
    fn hooks_outside_the_workspace_are_not_watched() {
        let lines = ["/w/shop/.openharness/hooks -> /w", "/w/a.yaml", "/home/u/", "/etc/"];
        let found = watches(OWN, &[], &lines);
        assert!(has(&found, "/w/shop/.openharness/hooks") && !has(&found, "/w/a.yaml"));
    }

    #[test]
    fn a_users_file_is_watched_where_its_links_lead() {
        let lines = [
            "/w/shop/",
            "/etc/",
            "/home/u/.claude/settings.json -> ..data/settings.json",
            "/home/u/.claude/..data -> ..2026_1",
            "/home/u/.claude/..2026_1/settings.json -> /srv/dotfiles/claude.json",
            "/srv/dotfiles/claude.json",
        ];
        let found = watches(CLAUDE, &[], &lines);
        assert!(has(&found, "/home/u/.claude/settings.json") && has(&found, "/home/u/.claude/..data"));
        assert!(
            has(&found, "/home/u/.claude/..2026_1/settings.json") && has(&found, "/srv/dotfiles/claude.json")
        );
        assert!(!found.directories.contains_key(Path::new("/srv")));
    }

    #[test]
    fn the_files_of_directories_around_the_workspace_matter() {
        let around = [PathBuf::from("/w"), PathBuf::from("/x")];
        let workspace = WatchedWorkspace {
            root: Path::new("/w/shop"),
            around: &around,
            home: None,
            system: Path::new("/etc"),
            dialects: &DialectSelection::Only(vec![CLAUDE]),
            files: &[PathBuf::from("/w/prompts/ask.md")],
            trust: &[],
        };
        let lines = ["/w/shop/", "/w/.openharness/hooks/", "/w/prompts/ask.md", "/x/", "/etc/"];
        let found = WatchPlan::of(&workspace, &disk(&lines));
        for path in ["/w/.openharness/hooks/a.yaml", "/w/.claude", "/x/.openharness", "/w/prompts/ask.md"] {
            assert!(has(&found, path), "{path}");
        }
        assert!(!has(&found, "/w/file") && !has(&found, "/x/file"));
    }

    #[test]
    fn a_link_to_itself_ends() {
        let lines = ["/w/shop/.openharness -> .openharness", "/home/u/", "/etc/"];
        assert!(has(&watches(OWN, &[], &lines), "/w/shop/.openharness"));
    }
}
