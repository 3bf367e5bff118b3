//! The tool `grep`: searches text files line by line.

use std::{
    fs::File,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use super::{
    arguments::GrepArguments,
    contents::{self, ContentsError},
    glob::PathPattern,
    output::{self, ToolOutput, refusal},
    walk::{STOPPED_NOTE, WalkEntry, walk},
};
use crate::{
    model::Matcher,
    root_dir::{OpenedPath, RootDir},
};

/// The largest file that is searched, in bytes.
const MAX_FILE: u64 = 2 << 20;

/// The most matches.
const MAX_MATCHES: usize = 100;

/// The longest line of the output, in characters.
const MAX_SHOWN: usize = 300;

/// What is shown at least of a line's text, however long its path is, in characters.
const MIN_SHOWN: usize = 40;

/// How much of a line is searched, in bytes. The slowest patterns take time in proportion to their size and the line's,
/// and a stop is noticed between lines only.
const MAX_SEARCHED: usize = 16 << 10;

struct Search<'a> {
    matcher: Matcher,
    glob: Option<PathPattern>,
    stop: &'a AtomicBool,
    answer: ToolOutput,
    matches: usize,
    omitted: SearchOmissions,
}

/// What was not searched.
#[derive(Default)]
struct SearchOmissions {
    more: bool,
    binary: usize,
    large: usize,
    unreadable: usize,
    long_lines: usize,
}

pub(super) fn run(
    root_dir: &RootDir,
    arguments: &GrepArguments,
    stop: &AtomicBool,
) -> Result<String, String> {
    let mut search = Search {
        matcher: Matcher::search(&arguments.pattern).map_err(|e| e.to_string())?,
        glob: arguments.glob.as_deref().map(PathPattern::of_path_or_name).transpose()?,
        stop,
        answer: ToolOutput::default(),
        matches: 0,
        omitted: SearchOmissions::default(),
    };
    let path = arguments.path.as_deref().unwrap_or(".");
    let about = |what: &dyn std::fmt::Display| format!("`{}` {what}", output::short(path, 300));
    // Without the needless `.` and slashes that a model may have written.
    let place: PathBuf = Path::new(path).components().filter(|part| part.as_os_str() != ".").collect();
    match root_dir.find(Path::new(path)).map_err(|error| about(&refusal(&error)))? {
        OpenedPath::File(file) => {
            _ = search.file(file, &place);
            if stop.load(Ordering::Relaxed) {
                search.answer.note(STOPPED_NOTE);
            }
        }
        OpenedPath::Directory(_) if place.components().any(|part| part.as_os_str() == ".git") => {
            return Err(about(&"is or is in a `.git` directory, which is not searched"));
        }
        OpenedPath::Directory(directory) => {
            walk(directory, place, stop, |leaf| search.leaf(leaf)).tell(&mut search.answer);
        }
    }
    search.omitted.tell(search.matches, &mut search.answer);
    Ok(search.answer.finish("no line matches"))
}

impl Search<'_> {
    fn leaf(&mut self, leaf: &WalkEntry<'_>) -> ControlFlow<()> {
        if self.glob.as_ref().is_some_and(|glob| !glob.accepts(leaf.path)) {
            return ControlFlow::Continue(());
        }
        match leaf.open() {
            Ok(Some(file)) => return self.file(file, leaf.path),
            Ok(None) => {}
            Err(_) => self.omitted.unreadable += 1,
        }
        ControlFlow::Continue(())
    }

    fn file(&mut self, file: File, path: &Path) -> ControlFlow<()> {
        match contents::read(file, MAX_FILE, self.stop) {
            Ok(bytes) if contents::is_text(&bytes) => return self.lines(&bytes, path),
            Ok(_) => self.omitted.binary += 1,
            // The walk notes it.
            Err(ContentsError::Stopped) => {}
            Err(ContentsError::TooLarge(_)) => self.omitted.large += 1,
            Err(ContentsError::Failed(_)) => self.omitted.unreadable += 1,
        }
        ControlFlow::Continue(())
    }

    fn lines(&mut self, bytes: &[u8], path: &Path) -> ControlFlow<()> {
        let mut shown_path = None;
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            self.omitted.long_lines += usize::from(line.len() > MAX_SEARCHED);
            let text = String::from_utf8_lossy(&line[..line.len().min(MAX_SEARCHED)]);
            if self.matcher.accepts(&text) {
                let path = shown_path.get_or_insert_with(|| output::shown_path(path));
                self.found(path, number, &text)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn found(&mut self, path: &str, number: usize, text: &str) -> ControlFlow<()> {
        let place = format!("{path}:{number}: ");
        let room = MAX_SHOWN.saturating_sub(place.chars().count()).max(MIN_SHOWN);
        let line = format!("{place}{}", output::cut(text, room));
        if self.matches == MAX_MATCHES || self.answer.line(&line).is_err() {
            self.omitted.more = true;
            return ControlFlow::Break(());
        }
        self.matches += 1;
        ControlFlow::Continue(())
    }
}

impl SearchOmissions {
    fn tell(&self, matches: usize, answer: &mut ToolOutput) {
        if self.more {
            answer.note(&format!(
                "stopped early after {matches} matches: use a narrower pattern, path or glob"
            ));
        }
        if self.binary > 0 {
            answer.note(&format!("binary files, not searched: {}", self.binary));
        }
        if self.large > 0 {
            answer.note(&format!("files larger than {MAX_FILE} bytes, not searched: {}", self.large));
        }
        if self.unreadable > 0 {
            answer.note(&format!("files that could not be read: {}", self.unreadable));
        }
        if self.long_lines > 0 {
            let lines = self.long_lines;
            answer.note(&format!("lines searched in their first {MAX_SEARCHED} bytes only: {lines}"));
        }
    }
}
