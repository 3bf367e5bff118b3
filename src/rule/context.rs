//! What functions of rules are called with: the event, the steps that are left, and what was counted in the run.

use std::{cell::RefCell, sync::Arc};

use super::{
    budget::{Budget, LONGEST_LIST},
    facts::{EventFacts, SharedCommands},
    failure::EvaluationError,
    paths, secrets,
    value::RuleValue,
};
use crate::model::{DirectoryName, KeyCounts, KnownLinks, LinkGap};

/// The most characters of a path that an error shows.
const SHOWN_PATH: usize = 120;

/// What functions are called with.
pub(super) struct CallContext<'a> {
    pub(super) facts: EventFacts<'a>,
    pub(super) budget: &'a Budget,
    counts: RefCell<&'a mut KeyCounts>,
    /// The keys that were counted for this event. Each counts once.
    counted: RefCell<Vec<(Box<str>, u32)>>,
}

impl<'a> CallContext<'a> {
    pub(super) fn new(facts: EventFacts<'a>, budget: &'a Budget, counts: &'a mut KeyCounts) -> Self {
        Self { facts, budget, counts: RefCell::new(counts), counted: RefCell::default() }
    }

    /// Minutes since 1970 at the arrival of the event.
    pub(super) fn minutes(&self) -> Result<i64, EvaluationError> {
        self.facts.minutes().ok_or(EvaluationError::NoSuchVariable("now()"))
    }

    /// Names with links in them.
    pub(super) fn names(&self) -> &'a [DirectoryName] {
        &self.facts.workspace.names
    }

    /// What is known of the links in the paths of the event.
    pub(super) fn links(&self) -> Option<&'a KnownLinks> {
        self.facts.links
    }

    /// Where a path leads.
    pub(super) fn leads(&self, path: &str, directory: &str) -> Result<String, EvaluationError> {
        paths::leads(path, directory, self.names(), self.links()).map_err(|gap| unknown_links(path, gap))
    }

    /// Whether a path leads into a directory, or to it.
    pub(super) fn leads_within(&self, path: &str, directory: &str) -> Result<bool, EvaluationError> {
        paths::leads_within(path, directory, self.names(), self.links())
            .map_err(|gap| unknown_links(path, gap))
    }

    /// The commands of a shell text.
    pub(super) fn shell(&self, text: &str) -> Arc<SharedCommands> {
        self.facts.shell(text)
    }

    /// Counts a key, once for this event. Returns in how many events of the run the hook has counted it.
    pub(super) fn count(&self, key: &str) -> Result<u32, EvaluationError> {
        let mut counted = self.counted.borrow_mut();
        if let Some((_, count)) = counted.iter().find(|(known, _)| **known == *key) {
            return Ok(*count);
        }
        let count = self.counts.borrow_mut().count(key).ok_or(EvaluationError::TooManyKeys)?;
        counted.push((key.into(), count));
        Ok(count)
    }

    /// A list of texts.
    pub(super) fn list(&self, texts: impl Iterator<Item = String>) -> Result<RuleValue<'a>, EvaluationError> {
        let mut found = Vec::new();
        for text in texts {
            self.budget.take(1)?;
            if found.len() == LONGEST_LIST {
                return Err(EvaluationError::TooLong);
            }
            found.push(RuleValue::Text(text.into()));
        }
        Ok(RuleValue::List(found.into()))
    }
}

/// Words of commands are taken for paths that may hold secrets.
fn unknown_links(path: &str, gap: LinkGap) -> EvaluationError {
    let redacted = secrets::redact(path);
    let shown = match redacted.char_indices().nth(SHOWN_PATH) {
        Some((end, _)) => format!("{}…", &redacted[..end]),
        None => redacted,
    };
    EvaluationError::UnknownLinks { path: shown.into(), gap }
}
