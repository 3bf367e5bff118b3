//! Why a bundle is not taken.

use std::fmt;

/// The longest message, in bytes.
const LONGEST_MESSAGE: usize = 1024;

/// What is wrong with a bundle, for people and for the label of a metric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct BundleRejection {
    pub(crate) kind: RejectionKind,
    pub(crate) message: String,
}

impl BundleRejection {
    /// What the message quotes of a bundle may be anything: it becomes one short line.
    pub(crate) fn new(kind: RejectionKind, message: impl Into<String>) -> Self {
        let mut shown = String::new();
        for character in message.into().chars() {
            if shown.len() >= LONGEST_MESSAGE {
                shown.push('\u{2026}');
                break;
            }
            if character.is_control() {
                shown.extend(character.escape_debug());
            } else {
                shown.push(character);
            }
        }
        Self { kind, message: shown }
    }
}

/// The classes of what can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RejectionKind {
    /// The signed statement is not in its one form.
    Statement,
    /// None of the keys that the settings name has signed it.
    Signature,
    /// It is not newer than what is in force.
    Older,
    /// It is a bundle of another name than the one in force.
    Name,
    /// Its time is over.
    Expired,
    /// Its time has not come.
    NotYet,
    /// The archive is not the one that was signed.
    Damaged,
    /// The archive has what no bundle has.
    Archive,
    /// The manifest is wrong, or does not fit the archive.
    Manifest,
    /// It needs a newer hookyard.
    MinHookyard,
    /// A hook file of it cannot be loaded here.
    Hooks,
    /// It cannot be kept on this disk.
    Storage,
}

impl RejectionKind {
    pub(crate) const ALL: [Self; 12] = [
        Self::Statement,
        Self::Signature,
        Self::Older,
        Self::Name,
        Self::Expired,
        Self::NotYet,
        Self::Damaged,
        Self::Archive,
        Self::Manifest,
        Self::MinHookyard,
        Self::Hooks,
        Self::Storage,
    ];

    /// The word for it in metrics and status.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Statement => "statement",
            Self::Signature => "signature",
            Self::Older => "older",
            Self::Name => "name",
            Self::Expired => "expired",
            Self::NotYet => "not_yet",
            Self::Damaged => "damaged",
            Self::Archive => "archive",
            Self::Manifest => "manifest",
            Self::MinHookyard => "min_hookyard",
            Self::Hooks => "hooks",
            Self::Storage => "storage",
        }
    }
}

impl fmt::Display for RejectionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
