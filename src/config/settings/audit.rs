//! What is written down of outcomes, where, and how safely. Refuses to write anything.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use super::{
    super::{
        quantity,
        section::{Section, absolute},
    },
    count,
};
use crate::dialect::Value;

/// What is written down of outcomes, where, and how safely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditSettings {
    /// Where the lines go; none writes none.
    pub to: Option<AuditDestination>,
    /// How large a file may get, in bytes, before it is set aside.
    pub max_size: usize,
    /// How many files that were set aside are kept.
    pub keep: NonZeroUsize,
    /// How many lines may wait to be written.
    pub queue: NonZeroUsize,
    /// When the system is asked to put them on the disk.
    pub sync: AuditSync,
    /// What is told of what hooks changed.
    pub patches: AuditPatches,
}

/// Where audit lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditDestination {
    /// To the end of this file.
    File(PathBuf),
    /// To standard output.
    Stdout,
}

/// When audit lines are surely on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditSync {
    /// When the system sees fit.
    Never,
    /// Each before the next is written.
    Always,
    /// At the latest after this time.
    Every(Duration),
}

/// What an audit line tells of what hooks changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditPatches {
    /// The places of values that are not what the host sent.
    Paths,
    /// The changed parts as the host gets them.
    Values,
    /// Nothing.
    Nothing,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self {
            to: None,
            max_size: 64 << 20,
            keep: count(5),
            queue: count(8192),
            sync: AuditSync::Never,
            patches: AuditPatches::Paths,
        }
    }
}

impl AuditSettings {
    pub(super) fn take(&mut self, audit: &mut Section<'_>) {
        audit.optional("to", &mut self.to, place);
        audit.size("max_size", &mut self.max_size);
        audit.count("keep", &mut self.keep);
        audit.count("queue", &mut self.queue);
        audit.choice("sync", &mut self.sync, sync);
        audit.choice("patches", &mut self.patches, patches);
    }
}

fn place(value: &Value<'_>) -> Option<AuditDestination> {
    if value.as_text() == Some("stdout") {
        return Some(AuditDestination::Stdout);
    }
    absolute(value).map(AuditDestination::File)
}

fn sync(value: &Value<'_>) -> Option<AuditSync> {
    let text = value.text()?;
    let found = match text {
        "never" => Some(AuditSync::Never),
        "always" => Some(AuditSync::Always),
        _ => quantity::duration(text).map(AuditSync::Every),
    };
    if found.is_none() {
        let message = format!("`{}` must be a duration, `always` or `never`", value.name());
        value.error("quantity", message, "write a duration with its unit: `500ms`, `1s`");
    }
    found
}

fn patches(value: &Value<'_>) -> Option<AuditPatches> {
    let found = match value.text()? {
        "paths" => Some(AuditPatches::Paths),
        "values" => Some(AuditPatches::Values),
        "none" => Some(AuditPatches::Nothing),
        _ => None,
    };
    if found.is_none() {
        let message = format!("`{}` has no such choice", value.name());
        value.error("choice", message, "use `paths`, `values` or `none`");
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Settings;

    #[test]
    fn all_of_it_is_read() {
        let text = "audit: { to: stdout, max_size: 1MiB, keep: 2, queue: 9, sync: 2s, patches: none }";
        let expected = AuditSettings {
            to: Some(AuditDestination::Stdout),
            max_size: 1 << 20,
            keep: count(2),
            queue: count(9),
            sync: AuditSync::Every(Duration::from_secs(2)),
            patches: AuditPatches::Nothing,
        };
        assert_eq!(Settings::from_yaml(text, Path::new("x")).0.unwrap().audit, expected);
        let text = "audit: { to: /var/log/audit.jsonl, sync: always }";
        let audit = Settings::from_yaml(text, Path::new("x")).0.unwrap().audit;
        assert_eq!(audit.to, Some(AuditDestination::File("/var/log/audit.jsonl".into())));
        assert_eq!(audit.sync, AuditSync::Always);
    }

    #[test]
    fn what_cannot_be_is_told() {
        for (text, expected) in [
            ("audit: { to: here.jsonl }", "`to` must be an absolute path"),
            ("audit: { sync: sometimes }", "`sync` must be a duration, `always` or `never`"),
            ("audit: { sync: 0s }", "`sync` must be a duration"),
            ("audit: { patches: all }", "`patches` has no such choice"),
            ("audit: { keep: 0 }", "`keep` is out of range"),
        ] {
            let (settings, diagnostics) = Settings::from_yaml(text, Path::new("x"));
            let told: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
            assert!(settings.is_none() && told.len() == 1 && told[0].contains(expected), "{text}: {told:?}");
        }
    }
}
