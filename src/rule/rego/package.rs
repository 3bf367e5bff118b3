//! A package of policies: which events it wants, and what its rules gave.

use std::{collections::BTreeSet, sync::Arc};

use regorus::Value;

use super::{routing::Routing, verb::Verb};

/// A package with rules that say something.
#[derive(Debug)]
pub(super) struct JudgingPackage {
    /// Its name, for people.
    pub(super) name: Arc<str>,
    path: Vec<String>,
    /// The names of its rules, from what is strictest on.
    pub(super) verbs: Vec<(&'static str, Verb)>,
    /// What its files want. It is asked if one of them wants the event.
    routing: Vec<Routing>,
}

impl JudgingPackage {
    pub(super) fn new(path: &[String]) -> Self {
        Self { name: path.join(".").into(), path: path.to_vec(), verbs: Vec::new(), routing: Vec::new() }
    }

    pub(super) fn add(&mut self, verbs: Vec<(&'static str, Verb)>, routing: Routing) {
        let known: BTreeSet<_> = self.verbs.drain(..).chain(verbs).map(|(name, verb)| (verb, name)).collect();
        self.verbs = known.into_iter().map(|(verb, name)| (name, verb)).collect();
        self.routing.push(routing);
    }

    /// The path of one of its rules.
    pub(super) fn rule(&self, name: &str) -> String {
        let path: String = self.path.iter().map(|part| step(part)).collect();
        format!("data{path}.{name}")
    }

    pub(super) fn wants(&self, names: &[&str], tool: Option<&str>) -> bool {
        self.routing.iter().any(|routing| routing.wants(names, tool))
    }
}

/// A part of a path, as policies write it.
fn step(part: &str) -> String {
    let is_word = part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_word { format!(".{part}") } else { format!("[{}]", serde_json::Value::from(part)) }
}

/// What a rule of a package gave.
pub(super) struct Said {
    pub(super) package: Arc<str>,
    pub(super) name: &'static str,
    pub(super) verb: Verb,
    pub(super) value: Value,
}
