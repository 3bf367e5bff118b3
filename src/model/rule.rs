//! Rules, which judge an event in process, and what they remember.

use std::{any::Any, collections::BTreeMap, fmt, sync::Arc};

use super::{Draft, Failure, KnownLinks, LinkNeeds, Reply, Workspace};

/// The most keys that one hook counts in one run.
const MOST_KEYS: usize = 64;

/// The longest key that a hook counts, in bytes.
const LONGEST_KEY: usize = 128;

/// Rules, which are evaluated inside the run's actor.
#[derive(Debug, Clone)]
pub struct RuleHandler {
    /// What they say, for people.
    pub shown: Arc<str>,
    /// What evaluates them.
    pub(crate) program: Arc<dyn RuleProgram>,
    /// Their keys and expressions.
    pub(crate) definition: Arc<str>,
    /// The files that they were loaded with.
    pub(crate) files: Arc<[FactFile]>,
}

/// A file that rules were loaded with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FactFile {
    /// Its path below the workspace.
    pub(crate) path: Arc<str>,
    /// What was in it.
    pub(crate) text: Arc<str>,
}

impl RuleHandler {
    /// Whether an expression may count something in the run.
    #[cfg(feature = "cluster")]
    pub(crate) fn may_count(&self) -> bool {
        // What counts is called so; more than that need not be known.
        self.definition.contains("run")
    }
}

/// Two are the same if their expressions and files are.
impl PartialEq for RuleHandler {
    fn eq(&self, other: &Self) -> bool {
        self.definition == other.definition && self.files == other.files
    }
}

/// What judges an event, from the event alone.
pub(crate) trait RuleProgram: fmt::Debug + Send + Sync {
    /// What it says of an event.
    ///
    /// Returns a failure if an expression that matters has no value, or takes too many steps.
    fn judge(&self, call: RuleCall<'_>) -> Result<Reply, Failure>;

    /// What it wants to know of the links in an event's paths, if it asks for any.
    fn link_needs(&self) -> Option<Arc<LinkNeeds>> {
        None
    }

    /// Why it says so: its expressions in the order in which they count, and what they are.
    #[cfg(any(feature = "cli", feature = "daemon"))]
    fn explain(&self, call: RuleCall<'_>) -> Vec<TracedExpression>;
}

/// What rules are asked about.
pub(crate) struct RuleCall<'a> {
    /// The event, with the patches so far.
    pub(crate) draft: &'a Draft,
    /// Where it happens.
    pub(crate) workspace: &'a Workspace,
    /// What is known of the links in its paths. Without it, paths are what they are written as.
    pub(crate) links: Option<&'a KnownLinks>,
    /// What rules have read of this event already.
    pub(crate) cache: &'a mut RuleCache,
    /// What the hook has counted in the run.
    pub(crate) counts: &'a mut KeyCounts,
}

/// What rules keep of one event, so that the next hook need not read it again.
#[derive(Default)]
pub(crate) struct RuleCache(Option<Box<dyn Any + Send>>);

impl RuleCache {
    /// What is kept, or new.
    pub(crate) fn get_or_make<T: Any + Send>(
        &mut self,
        is_current: impl FnOnce(&T) -> bool,
        make: impl FnOnce() -> T,
    ) -> Option<&T> {
        let kept = self.0.as_ref().and_then(|kept| kept.downcast_ref());
        if !kept.is_some_and(is_current) {
            self.0 = Some(Box::new(make()));
        }
        self.0.as_ref().and_then(|kept| kept.downcast_ref())
    }
}

impl fmt::Debug for RuleCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RuleCache").field(&self.0.is_some()).finish()
    }
}

/// How often a hook has counted each key in a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct KeyCounts(BTreeMap<Box<str>, u32>);

impl KeyCounts {
    /// Each key, and how often it was counted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.0.iter().map(|(key, count)| (&**key, *count))
    }

    /// Takes over that a key was counted as often, if it was counted less here. Of too many keys some are left out.
    pub(crate) fn raise(&mut self, key: &str, count: u32) {
        let has_room = self.0.len() < MOST_KEYS && key.len() <= LONGEST_KEY;
        if let Some(known) = self.0.get_mut(key) {
            *known = count.max(*known);
        } else if has_room {
            self.0.insert(key.into(), count);
        }
    }

    /// Counts a key once more. Returns how often that is, or `None` if there is no room for the key.
    pub(crate) fn count(&mut self, key: &str) -> Option<u32> {
        if let Some(count) = self.0.get_mut(key) {
            *count = count.saturating_add(1);
            return Some(*count);
        }
        if self.0.len() == MOST_KEYS || key.len() > LONGEST_KEY {
            return None;
        }
        self.0.insert(key.into(), 1);
        Some(1)
    }

    /// Whether nothing was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One expression of a rule, and what it is for an event.
#[cfg(any(feature = "cli", feature = "daemon"))]
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct TracedExpression {
    /// The name of the rule, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    /// Its key, such as `deny`.
    pub(crate) key: &'static str,
    /// The expression.
    pub(crate) expression: String,
    /// What it is, or why it has no value.
    pub(crate) result: String,
    /// Whether the verdict is its.
    pub(crate) decides: bool,
    /// What it was found from: parts of the event and named expressions, without secrets.
    pub(crate) values: Vec<TracedValue>,
}

/// A part of an expression, and its value.
#[cfg(any(feature = "cli", feature = "daemon"))]
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct TracedValue {
    /// The part as it is written.
    pub(crate) of: String,
    /// Its value, without secrets.
    pub(crate) value: String,
}
