//! Case files: how they are written, and what in an outcome is not as a case expects.

use std::{collections::BTreeMap, io::Read, path::Path};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;

use super::super::paths::open_input;
use crate::{
    config,
    model::{DialectName, Outcome, Target, Verdict, io_reason},
};

/// The largest case file, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// A file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseFile {
    /// Of cases that name none.
    #[serde(default)]
    pub(super) dialect: DialectChoice,
    pub(super) cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) dialect: Option<DialectChoice>,
    pub(super) event: serde_json::Map<String, Value>,
    /// Symbolic links in a directory of the case, by their names.
    #[serde(default)]
    pub(super) links: BTreeMap<String, String>,
    pub(super) expect: Expectation,
}

/// What an outcome must be. What is not named may be anything.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expectation {
    #[serde(deserialize_with = "verdict")]
    pub(super) verdict: Verdict,
    pub(super) reason: Option<String>,
    pub(super) by: Option<String>,
    pub(super) patched: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    pub(super) notes: Vec<String>,
    pub(super) hooks: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct DialectChoice(pub(super) DialectName);

impl Default for DialectChoice {
    fn default() -> Self {
        Self(DialectName::Canonical)
    }
}

impl<'de> Deserialize<'de> for DialectChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let known = DialectName::ALL.iter().find(|name| name.as_str() == text);
        let names = || DialectName::ALL.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        let known =
            known.ok_or_else(|| D::Error::custom(format!("no dialect {text:?}; use one of {}", names())));
        known.map(|name| Self(*name))
    }
}

fn verdict<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Verdict, D::Error> {
    let text = String::deserialize(deserializer)?;
    let known = Verdict::ALL.into_iter().find(|verdict| verdict.as_str() == text);
    let names = || Verdict::ALL.map(Verdict::as_str).join(", ");
    known.ok_or_else(|| D::Error::custom(format!("no verdict {text:?}; use one of {}", names())))
}

impl CaseFile {
    /// Reads a file; one of a workspace that nobody named, only if no link leads out of it.
    ///
    /// Returns why it cannot be used.
    pub(super) fn read(file: &Path, workspace: Option<&Path>) -> Result<Self, String> {
        if let Some(root) = workspace {
            let text = config::workspace_source(root, file).ok_or("is no readable file of the workspace")?;
            return Self::parsed(file, text.as_bytes());
        }
        let mut bytes = Vec::new();
        let read = open_input(file).and_then(|opened| opened.take(LARGEST_FILE + 1).read_to_end(&mut bytes));
        read.map_err(|error| format!("cannot be read: {}", io_reason(&error)))?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(format!("is larger than the {LARGEST_FILE} bytes allowed"));
        }
        Self::parsed(file, &bytes)
    }

    /// JSON is read as such: YAML has no pairs of surrogates.
    fn parsed(file: &Path, bytes: &[u8]) -> Result<Self, String> {
        if file.extension().is_some_and(|end| end == "json") {
            return serde_json::from_slice(bytes).map_err(|error| error.to_string());
        }
        serde_yaml::from_slice(bytes).map_err(|error| error.to_string())
    }
}

/// A part of the outcome that is not as expected.
#[derive(Debug, Serialize)]
pub(super) struct Difference {
    pub(super) part: String,
    pub(super) expected: Value,
    pub(super) found: Value,
}

impl Expectation {
    /// What is different in an outcome; `shown` is the same without secrets.
    pub(super) fn differences(&self, outcome: &Outcome, shown: &Outcome) -> Vec<Difference> {
        let mut found = Vec::new();
        let mut compare = |part: &str, is_equal: bool, expected: Value, shown: Value| {
            if !is_equal {
                found.push(Difference { part: part.to_owned(), expected, found: shown });
            }
        };
        compare("verdict", outcome.verdict == self.verdict, json(&self.verdict), json(&shown.verdict));
        if let Some(part) = &self.reason {
            let is_in = outcome.reason.as_ref().is_some_and(|reason| reason.contains(part));
            compare("reason", is_in, format!("… {part} …").into(), json(&shown.reason));
        }
        if let Some(by) = &self.by {
            let is_by = outcome.by.as_ref().is_some_and(|found| found.as_str() == by);
            compare("by", is_by, by.as_str().into(), json(&shown.by));
        }
        for note in &self.notes {
            let is_in = outcome.notes.iter().any(|known| known.text.contains(note));
            compare("notes", is_in, format!("… {note} …").into(), json(&shown.notes));
        }
        if let Some(hooks) = &self.hooks {
            let ran: Vec<&str> = outcome.hooks.iter().map(|report| report.hook.as_str()).collect();
            compare("hooks", ran == *hooks, json(hooks), json(&ran));
        }
        if let Some(patched) = &self.patched {
            let shown = json(&shown.patched);
            for (target, now) in outcome.patched.iter() {
                let expected = patched.get(target.as_str());
                let part = format!("patched.{target}");
                let is_equal = expected.is_some_and(|expected| json(now) == *expected);
                let found = shown[target.as_str()].clone();
                compare(&part, is_equal, expected.cloned().unwrap_or_default(), found);
            }
            let is_unchanged = |name: &&String| {
                Target::from_name(name).and_then(|target| outcome.patched.get(target)).is_none()
            };
            for name in patched.keys().filter(is_unchanged) {
                compare(&format!("patched.{name}"), false, patched[name].clone(), Value::Null);
            }
        }
        found
    }
}

fn json<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
