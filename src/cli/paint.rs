//! Colours. Without them every text comes back as it is.

use crate::model::{Severity, Verdict};

/// Whether texts are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paint {
    /// With colours.
    Colored,
    /// Without.
    Plain,
}

impl Paint {
    pub(super) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(super) fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(super) fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    pub(super) fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    /// A text in the colour of a verdict.
    pub(super) fn verdict(self, verdict: Verdict, text: &str) -> String {
        match verdict {
            Verdict::Proceed | Verdict::Allow => self.with("1;32", text),
            Verdict::Ask => self.with("1;33", text),
            Verdict::Block => self.with("1;31", text),
            Verdict::Halt => self.with("1;35", text),
        }
    }

    /// A text in the colour of a severity.
    pub(super) fn severity(self, severity: Severity, text: &str) -> String {
        match severity {
            Severity::Error => self.with("1;31", text),
            Severity::Warning => self.with("1;33", text),
            Severity::Info => self.with("1;36", text),
        }
    }

    fn with(self, code: &str, text: &str) -> String {
        match self {
            Self::Colored => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::Plain => text.to_owned(),
        }
    }
}
