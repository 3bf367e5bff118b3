//! The copy of a pack's hook file: whether it is as this program has it, and how it is written.
//!
//! The first line of a copy says what was written, so that a copy of another version is told from one that somebody has
//! edited. What the rules leave alone stands in lines of its own, which belong to whoever uses the pack.

use super::packs::PackFile;
use crate::config::sha256;

/// The names under `let` whose values belong to whoever uses the pack.
const OWN_VALUES: [&str; 4] = ["exceptions", "protected", "trusted", "unchecked"];

/// How much of the digest stands in the first line: it tells of accidents, not of attacks.
const DIGEST_LENGTH: usize = 16;

/// What is at the place of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyState {
    /// Nothing.
    Absent,
    /// The file as this program has it, up to values of whoever uses it.
    Current,
    /// The file as another version of the program has written it.
    OtherVersion,
    /// Something that somebody has changed, or put there.
    Edited,
}

impl CopyState {
    /// What is there.
    pub(super) fn of(present: Option<&str>, file: &PackFile) -> Self {
        let Some(present) = present else { return Self::Absent };
        let (head, body) = present.split_once('\n').unwrap_or((present, ""));
        let digest = digest(body);
        let is_own_head = head.starts_with(START) && head.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        // Any other first line may be one that changes the guard.
        let is_current = is_own_head && digest == self::digest(file.text);
        if is_current || self::digest(present) == self::digest(file.text) {
            Self::Current
        } else if written_digest(head) == Some(digest.as_str()) {
            Self::OtherVersion
        } else {
            Self::Edited
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Current => "current",
            Self::OtherVersion => "other-version",
            Self::Edited => "edited",
        }
    }
}

/// The text of a new copy, with the values of whoever uses the former one.
pub(super) fn copy(pack: &str, file: &PackFile, former: Option<&str>) -> String {
    let body = match former {
        Some(former) => with_values(file.text, former),
        None => file.text.to_owned(),
    };
    format!(
        "{START}{pack} of hookyard {}, {}; change `exceptions` alone\n{body}",
        env!("CARGO_PKG_VERSION"),
        digest(file.text)
    )
}

/// Whether a copy leaves alone what the pack does, and no more.
pub(super) fn has_own_values(present: &str, file: &PackFile) -> bool {
    value_lines(present).ne(value_lines(file.text))
}

/// How the first line of a copy begins.
const START: &str = "# Pack ";

/// The digest that the first line of a copy names.
fn written_digest(head: &str) -> Option<&str> {
    let (_, rest) = head.strip_prefix(START)?.split_once(", ")?;
    rest.split(';').next()
}

/// The digest of a hook file without the values of whoever uses it.
fn digest(text: &str) -> String {
    let lines = text.lines().map(|line| match own_name(line) {
        Some(name) => name,
        None => line,
    });
    let lines: Vec<&str> = lines.collect();
    let mut digest = sha256(lines.join("\n").as_bytes());
    digest.truncate(DIGEST_LENGTH);
    digest
}

/// The name of a line that gives one of the own values, in one line.
fn own_name(line: &str) -> Option<&str> {
    let (name, value) = line.strip_prefix("    ")?.split_once(": ")?;
    let is_whole = !matches!(value.trim(), "" | "|" | "|-" | ">" | ">-");
    (OWN_VALUES.contains(&name) && is_whole).then_some(name)
}

fn value_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| own_name(line).is_some())
}

/// A text with the own values of another.
fn with_values(text: &str, former: &str) -> String {
    let line = |line: &str| {
        let name = own_name(line);
        let kept = name.and_then(|name| value_lines(former).find(|kept| own_name(kept) == Some(name)));
        format!("{}\n", kept.unwrap_or(line))
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: PackFile = PackFile {
        hook: "guard",
        text: "name: guard\nhandler:\n  let:\n    exceptions: '[]'\n    other: '1'\n",
    };

    #[test]
    fn a_copy_is_current_whatever_its_exceptions_are() {
        let copy = copy("pack", &FILE, None);
        assert_eq!(CopyState::of(Some(&copy), &FILE), CopyState::Current);
        let own = copy.replace("'[]'", "'[\"ls\"]'");
        assert_eq!(CopyState::of(Some(&own), &FILE), CopyState::Current);
        assert!(has_own_values(&own, &FILE) && !has_own_values(&copy, &FILE));
        assert_eq!(CopyState::of(Some(FILE.text), &FILE), CopyState::Current);
        assert_eq!(CopyState::of(None, &FILE), CopyState::Absent);
    }

    #[test]
    fn any_other_change_makes_it_edited() {
        let copy = copy("pack", &FILE, None);
        for (from, to) in
            [("other: '1'", "other: '2'"), ("name: guard\n", ""), ("'[]'", ""), ("'[]'", "|-\n      []")]
        {
            let edited = copy.replace(from, to);
            assert_eq!(CopyState::of(Some(&edited), &FILE), CopyState::Edited, "{edited}");
        }
        assert_eq!(CopyState::of(Some(""), &FILE), CopyState::Edited);
        for head in ["matcher: ^x$", "# Pack x\rmatcher: ^x$", "# Pack x\u{85}matcher: ^x$", "# mine"] {
            let edited = format!("{head}\n{}", FILE.text);
            assert_eq!(CopyState::of(Some(&edited), &FILE), CopyState::Edited, "{edited}");
        }
    }

    #[test]
    fn a_copy_of_another_version_is_told_and_its_exceptions_are_kept() {
        let older = PackFile { hook: "guard", text: "name: guard\nhandler:\n  let:\n    exceptions: '[]'\n" };
        let copied = copy("pack", &older, None).replace("'[]'", "'[\"ls\"]'");
        assert_eq!(CopyState::of(Some(&copied), &FILE), CopyState::OtherVersion);
        let new = copy("pack", &FILE, Some(&copied));
        assert_eq!(CopyState::of(Some(&new), &FILE), CopyState::Current);
        assert!(new.contains("    exceptions: '[\"ls\"]'\n    other: '1'\n"), "{new}");
    }
}
