//! The paths that an event names, so that their links are looked up before rules judge it: strings of a tool's input that can be
//! paths, and words of shell commands in it.

use std::{fmt, ops::ControlFlow};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{
    paths::normalized_among,
    shell,
    words::{Directories, changed_directory, directory_flag, is_no_path, path_ranges},
};
use crate::model::{LONGEST_PATH, LinkGap};

/// The most strings of an input that are looked at.
const MOST_STRINGS: usize = 16_384;

/// The bytes of all strings that are looked at.
const MOST_BYTES: usize = 1 << 20;

/// The longest text that is taken for a shell text if its name does not say that it is one.
const LONGEST_UNNAMED: usize = 4 << 10;

/// The names of shell texts.
const SHELL_KEYS: [&str; 5] = ["command", "cmd", "script", "shell", "commands"];

/// The names of directories that a call counts its paths from.
const DIRECTORY_KEYS: [&str; 11] = [
    "workdir",
    "workDir",
    "work_dir",
    "cwd",
    "directory",
    "dir",
    "dir_path",
    "working_directory",
    "workingDirectory",
    "working_dir",
    "workingDir",
];

/// How lines of patches begin that name a file.
const PATCH_LINES: [&str; 7] = ["*** ", "+++ ", "--- ", "rename ", "copy ", "diff --git ", "Index: "];

/// Calls with every path that an input names and the directory that it counts from, the most likely ones first.
///
/// Returns why some are not among them.
pub(crate) fn named_paths(
    input: &str,
    bases: &[String],
    visit: &mut dyn FnMut(&str, &str) -> ControlFlow<LinkGap>,
) -> ControlFlow<LinkGap> {
    let mut found = FoundStrings::default();
    let read = Collect { into: &mut found, meaning: Meaning::Any };
    let mut json = serde_json::Deserializer::from_str(input);
    // It was checked when the event came, so that nothing is lost.
    let is_read = read.deserialize(&mut json).is_ok();
    let bases = &with_directories(&found, bases);
    for (text, _) in found.strings.iter().filter(|(text, _)| is_path(text)) {
        in_all(text, bases, visit)?;
    }
    for (text, meaning) in &found.strings {
        let may_be = *meaning == Meaning::Shell
            || text.len() <= LONGEST_UNNAMED && text.contains([' ', '\n', '>', '<']);
        if may_be {
            in_shell(text, bases, visit)?;
        }
    }
    for (text, _) in found.strings.iter().filter(|(text, _)| text.contains('\n')) {
        in_patch(text, bases, visit)?;
    }
    if found.is_cut || !is_read { ControlFlow::Break(LinkGap::TooMany) } else { ControlFlow::Continue(()) }
}

/// The directories, and those that the call names itself.
fn with_directories(found: &FoundStrings, bases: &[String]) -> Vec<String> {
    let named =
        found.strings.iter().filter(|(text, meaning)| *meaning == Meaning::Directory && is_path(text));
    let mut all = Directories::new(bases.to_vec());
    for (text, _) in named {
        // Rules do not know those for which there is no room.
        all.add(changed_to(text, bases));
    }
    all.known().to_vec()
}

fn is_path(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST_PATH && !text.starts_with('~') && !text.contains(['\0', '\n'])
}

/// A path from each directory on, as it is written and without its `..`: those behind a link lead elsewhere.
fn in_all(
    path: &str,
    bases: &[String],
    visit: &mut dyn FnMut(&str, &str) -> ControlFlow<LinkGap>,
) -> ControlFlow<LinkGap> {
    let path = path.strip_prefix("file://").unwrap_or(path);
    for base in bases {
        visit(path, base)?;
        if path.contains("..") || base.contains("..") {
            visit(&normalized_among(path, base, &[]), "/")?;
        }
        if path.starts_with('/') {
            break;
        }
    }
    ControlFlow::Continue(())
}

fn in_shell(
    text: &str,
    bases: &[String],
    visit: &mut dyn FnMut(&str, &str) -> ControlFlow<LinkGap>,
) -> ControlFlow<LinkGap> {
    let mut bases = Directories::new(bases.to_vec());
    for command in shell::commands(text).commands {
        let redirected = command.redirects.iter().map(|(_, file)| file);
        let set = command.assignments.iter().map(|(_, value)| value);
        let words: Vec<&String> = command.args.iter().chain(redirected).chain(set).collect();
        let own = directory_flag(&command.args).map(|path| changed_to(path, bases.known()));
        let all: Vec<String> = bases.known().iter().cloned().chain(own.into_iter().flatten()).collect();
        for word in words.into_iter().filter(|word| !is_no_path(word)) {
            for range in path_ranges(word) {
                in_all(&word[range], &all, visit)?;
            }
        }
        if let Some(path) = changed_directory(&command) {
            // Words of those for which there is no room are not known to rules.
            bases.add(changed_to(path, bases.known()));
        }
    }
    ControlFlow::Continue(())
}

/// The directories that a change may lead to from each of some: as shells take `..`, and as the system does.
fn changed_to(path: &str, bases: &[String]) -> Vec<String> {
    let mut led: Vec<String> = bases.iter().map(|base| normalized_among(path, base, &[])).collect();
    if path.contains("..") {
        let join =
            |base: &String| if path.starts_with('/') { path.to_owned() } else { format!("{base}/{path}") };
        led.extend(bases.iter().map(join));
    }
    led
}

/// The files in the lines of a patch.
fn in_patch(
    text: &str,
    bases: &[String],
    visit: &mut dyn FnMut(&str, &str) -> ControlFlow<LinkGap>,
) -> ControlFlow<LinkGap> {
    let is_named = |line: &&str| PATCH_LINES.iter().any(|beginning| line.starts_with(beginning));
    for line in text.lines().filter(is_named) {
        let behind = line.split_once(": ").map(|(_, file)| file);
        let rest = line.split_once(' ').map(|(_, rest)| rest);
        // `rename from my file`
        let name = rest.and_then(|rest| rest.split_once(' ')).map(|(_, name)| name);
        let words = line.split_whitespace().skip(1);
        for path in behind.into_iter().chain(rest).chain(name).chain(words) {
            let bare = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/"));
            for path in [Some(path), bare].into_iter().flatten().filter(|path| is_path(path)) {
                in_all(path, bases, visit)?;
            }
        }
    }
    ControlFlow::Continue(())
}

/// What the name of a string says of it.
#[derive(Clone, Copy, PartialEq)]
enum Meaning {
    Shell,
    Directory,
    Any,
}

impl Meaning {
    fn of(key: &str) -> Self {
        match key {
            _ if SHELL_KEYS.contains(&key) => Self::Shell,
            _ if DIRECTORY_KEYS.contains(&key) => Self::Directory,
            _ => Self::Any,
        }
    }
}

/// The strings of a value, and what the name of each says of it.
#[derive(Default)]
struct FoundStrings {
    strings: Vec<(String, Meaning)>,
    bytes: usize,
    /// Whether there are more.
    is_cut: bool,
}

/// Collects the strings of a value without building it.
struct Collect<'f> {
    into: &'f mut FoundStrings,
    meaning: Meaning,
}

impl<'de> DeserializeSeed<'de> for Collect<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Collect<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        let found = self.into;
        // A longer one is no path and no shell text that is read.
        if text.len() > shell::LONGEST_TEXT || text.is_empty() {
            return Ok(());
        }
        if found.strings.len() == MOST_STRINGS || found.bytes + text.len() > MOST_BYTES {
            found.is_cut = true;
            return Ok(());
        }
        found.bytes += text.len();
        found.strings.push((text.to_owned(), self.meaning));
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(Collect { into: &mut *self.into, meaning: self.meaning })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if self.into.is_cut {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            map.next_value_seed(Collect { into: &mut *self.into, meaning: Meaning::of(&key) })?;
        }
        Ok(())
    }
}
