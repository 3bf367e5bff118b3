//! What names tell: the kind of a text by that of its file, and parts of hooks' names for what has a name of its own.

use std::path::Path;

/// What a text is, which may have hooks in its front matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    /// An agent.
    Agent,
    /// A command.
    Command,
    /// A skill, in a directory of its own.
    Skill,
}

impl TextKind {
    /// Whether a file may be such a text, by its name.
    pub(crate) fn takes(self, file: &Path) -> bool {
        match self {
            Self::Agent | Self::Command => file.extension().is_some_and(|end| end == "md"),
            Self::Skill => file.file_name().is_some_and(|name| name == "SKILL.md"),
        }
    }
}

/// A text with a dash for each character that is not of the alphabet, a digit or one of these.
pub(super) fn plain(text: &str, more: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || more.contains(c) { c } else { '-' }).collect()
}

/// A part of a hook's name for an id: two ids never have the same one.
pub(super) fn short_label(id: &str, longest: usize) -> String {
    let is_plain =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let parts: Vec<&str> = id.split('@').collect();
    if id.len() <= longest && parts.iter().all(|part| is_plain(part)) {
        return parts.join("_");
    }
    let name: String = plain(parts[0], "-").chars().take(longest - 9).collect();
    // FNV-1a, which unlike the hasher of the standard library is the same everywhere and for ever.
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    format!("{name}_{:08x}", id.bytes().fold(0x811c_9dc5, step))
}
