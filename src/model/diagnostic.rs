//! Diagnostics: a mistake in a file, its position, and how to fix it.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::shown_text::{escaped_line, serialize_path};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Probably not meant.
    Warning,
    /// The hook or file is left out.
    Error,
}

/// An error, a warning or a remark about a file that was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A stable code of the mistake, such as `unknown-key`.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// The file.
    #[serde(serialize_with = "serialize_path")]
    pub file: PathBuf,
    /// The line, from 1; 0 where the whole file is meant.
    pub line: usize,
    /// The column in characters, from 1; 0 where the whole file is meant.
    pub column: usize,
    /// How many characters are meant, at least 1.
    #[serde(skip)]
    pub length: usize,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Whether a hook, or a setting of hooks, is not loaded because of it. So it is with every error, and with warnings
    /// about the settings files of agents, which other programs read as well.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
}

impl Diagnostic {
    /// A diagnostic about a whole file.
    pub fn of_file(severity: Severity, code: &'static str, file: &Path, message: impl Into<String>) -> Self {
        Self {
            severity,
            code,
            message: message.into(),
            file: file.into(),
            line: 0,
            column: 0,
            length: 1,
            help: None,
            skipped: severity == Severity::Error,
        }
    }

    /// The code of a hook whose handler this build cannot run.
    pub(crate) const MISSING_FEATURE: &str = "missing-feature";

    /// The code of a hook that is not trusted, or not any more.
    pub(crate) const TRUST: &str = "trust";

    /// The code of a record of trust that cannot be used.
    pub(crate) const TRUST_RECORD: &str = "trust-record";

    /// The code of a workspace with trusted hooks in whose place there is a link.
    pub(crate) const REPLACED: &str = "replaced";

    /// The code of a switch that does not reach the hooks it names.
    pub(crate) const CANNOT_DISABLE: &str = "cannot-disable";

    /// The code of a hook that the operator requires and that is not in force.
    pub(crate) const REQUIRED_MISSING: &str = "required-missing";

    /// The code of an http hook that may not ask its server.
    pub(crate) const HTTP_TARGET: &str = "http-target";

    /// The code of a program or script that is not there, of a hook that denies when it fails.
    pub(crate) const BROKEN_GUARD: &str = "broken-guard";

    /// The code of a hook that denies when it fails and that a file of the workspace switches off.
    pub(crate) const SILENT_GUARD: &str = "silent-guard";

    /// The code of what becomes of the rules of a broken file.
    pub(crate) const LAST_GOOD: &str = "last-good";

    /// The code of a load that a limit of the process or the machine kept from reading every file.
    pub(crate) const SHORTAGE: &str = "shortage";

    /// The code of what is wrong in the file of a policy. The hook file that names it has a mistake of its own.
    pub(crate) const POLICY: &str = "policy-file";

    /// The code of what is wrong with the signed bundle of hooks.
    pub(crate) const BUNDLE: &str = "bundle";

    /// Whether it means that a file could not be read as it is. A hook that this build cannot run was read, and so
    /// was one that is not trusted or may not ask its server.
    pub(crate) fn is_of_broken_file(&self) -> bool {
        let of_hooks = [
            Self::MISSING_FEATURE,
            Self::TRUST,
            Self::TRUST_RECORD,
            Self::REPLACED,
            Self::REQUIRED_MISSING,
            Self::HTTP_TARGET,
            Self::BROKEN_GUARD,
            Self::SILENT_GUARD,
            Self::LAST_GOOD,
            Self::POLICY,
            Self::BUNDLE,
        ];
        self.severity == Severity::Error && !of_hooks.contains(&self.code)
    }

    /// Adds what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Files have the names that others gave them.
        write!(f, "{}", escaped_line(&self.file.to_string_lossy()))?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        write!(f, ": {}", self.message)?;
        self.help.iter().try_for_each(|help| write!(f, " ({help})"))
    }
}
