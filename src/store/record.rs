//! What is kept of one run and of the deliveries of one event, and the format in which it is written.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use crate::model::{HookName, KeyCounts};

/// The version of the format.
const VERSION: u32 = 1;

/// The version of a [`StoredRun`] in which rules have counted.
const VERSION_WITH_COUNTS: u32 = 2;

/// The version of a [`DeliveryProgress`] that names required hooks.
const VERSION_WITH_REQUIRED: u32 = 2;

/// What is kept of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StoredRun {
    /// Why its interceptor events are halted, if they are.
    pub(crate) halt: Option<StoredHalt>,
    /// The hooks that run once per run and have run, in order.
    pub(crate) had_turn: Vec<TakenTurn>,
    /// How often in a row hooks kept its agent from stopping.
    pub(crate) stops_blocked: u8,
    /// What the rules of hooks have counted.
    pub(crate) counts: BTreeMap<HookName, KeyCounts>,
}

/// A hook that has run, and that runs once per run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TakenTurn {
    pub(crate) hook: HookName,
    /// The SHA-256 of its definition, if it has one: another hook may get its name.
    pub(crate) definition: Option<Arc<str>>,
}

/// The halt of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredHalt {
    pub(crate) reason: Option<Arc<str>>,
    pub(crate) by: Option<HookName>,
}

/// Why a record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    /// A later hookyard wrote it.
    #[error("its version is {0}, which this hookyard does not know")]
    Version(u64),
    /// It is no record.
    #[error("it is damaged")]
    Damaged,
}

/// A record as it is written. Keys are left out where they say nothing: there may be a million.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    v: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    halt: Option<WrittenHalt>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    once: Vec<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    stops: u8,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    counts: BTreeMap<String, BTreeMap<String, u32>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHalt {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

/// Only the version, which a later format keeps.
#[derive(Deserialize)]
struct WrittenVersion {
    v: u64,
}

/// Returns an error if a record has another version than this one.
pub(super) fn check_version(text: &str, known: u32) -> Result<(), RecordError> {
    match serde_json::from_str(text) {
        Ok(WrittenVersion { v }) if v == u64::from(known) => Ok(()),
        Ok(WrittenVersion { v }) => Err(RecordError::Version(v)),
        Err(_) => Err(RecordError::Damaged),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u8) -> bool {
    *number == 0
}

impl StoredRun {
    /// Whether there is nothing to keep.
    pub(crate) fn is_empty(&self) -> bool {
        self.halt.is_none() && self.had_turn.is_empty() && self.stops_blocked == 0 && self.counts.is_empty()
    }

    /// Whether all that hooks have done by another record is in this one.
    #[cfg(feature = "cluster")]
    pub(crate) fn includes(&self, other: &Self) -> bool {
        let of = |run: &Self, hook: &HookName, key: &str| {
            run.counts.get(hook)?.iter().find(|(known, _)| *known == key).map(|(_, count)| count)
        };
        let mut counts = other
            .counts
            .iter()
            .flat_map(|(hook, counts)| counts.iter().map(move |(key, count)| (hook, key, count)));
        other.had_turn.iter().all(|turn| self.had_turn.contains(turn))
            && self.stops_blocked >= other.stops_blocked
            && counts.all(|(hook, key, count)| of(self, hook, key) >= Some(count))
    }

    /// The record as it is written.
    pub(crate) fn encode(&self) -> String {
        let halt = self.halt.as_ref().map(|halt| WrittenHalt {
            reason: halt.reason.clone(),
            by: halt.by.as_ref().map(ToString::to_string),
        });
        let once = self.had_turn.iter().map(TakenTurn::encode).collect();
        let keys = |counts: &KeyCounts| counts.iter().map(|(key, count)| (key.to_owned(), count)).collect();
        let counts: BTreeMap<_, _> =
            self.counts.iter().map(|(hook, counts)| (hook.to_string(), keys(counts))).collect();
        let v = if counts.is_empty() { VERSION } else { VERSION_WITH_COUNTS };
        let written = Written { v, halt, once, stops: self.stops_blocked, counts };
        serde_json::to_string(&written).expect("texts and numbers")
    }

    /// Reads a record.
    pub(crate) fn decode(text: &str) -> Result<Self, RecordError> {
        // Read as a whole first: a start reads a million of them.
        let written: Written = match serde_json::from_str(text) {
            Ok(Written { v, .. }) if v != VERSION && v != VERSION_WITH_COUNTS => {
                return Err(RecordError::Version(v.into()));
            }
            Ok(written) => written,
            Err(_) => return Err(check_version(text, VERSION).err().unwrap_or(RecordError::Damaged)),
        };
        let name = |text: String| HookName::new(text).map_err(|_| RecordError::Damaged);
        let halt = match written.halt {
            Some(halt) => Some(StoredHalt { reason: halt.reason, by: halt.by.map(name).transpose()? }),
            None => None,
        };
        let had_turn = written.once.iter().map(|text| TakenTurn::decode(text)).collect::<Result<_, _>>()?;
        let mut counts: BTreeMap<HookName, KeyCounts> = BTreeMap::new();
        for (hook, keys) in written.counts {
            let counts = counts.entry(name(hook)?).or_default();
            for (key, count) in &keys {
                counts.raise(key, *count);
            }
        }
        Ok(Self { halt, had_turn, stops_blocked: written.stops, counts })
    }
}

impl TakenTurn {
    /// The name, and after a blank the digest of the definition.
    fn encode(&self) -> String {
        match &self.definition {
            Some(definition) => format!("{} {definition}", self.hook),
            None => self.hook.to_string(),
        }
    }

    fn decode(text: &str) -> Result<Self, RecordError> {
        let (name, definition) = match text.split_once(' ') {
            Some((name, definition)) => (name, Some(definition)),
            None => (text, None),
        };
        let is_digest = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if definition.is_some_and(|definition| !is_digest(definition)) {
            return Err(RecordError::Damaged);
        }
        let hook = HookName::new(name).map_err(|_| RecordError::Damaged)?;
        Ok(Self { hook, definition: definition.map(Into::into) })
    }
}

/// What is known of the deliveries of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeliveryProgress {
    /// How often it has been given to its hooks.
    pub(crate) deliveries: u32,
    /// How often since it was accepted, or since a person asked for it.
    pub(crate) tries: u32,
    /// The hooks that have ended for good.
    pub(crate) done: Vec<HookName>,
    /// The hooks that failed the last time, and those that run once in a run and have begun but not ended.
    pub(crate) unfinished: Vec<HookName>,
    /// Why they did.
    pub(crate) error: Option<Arc<str>>,
    /// The directory of its workspace when it was accepted. Only hooks of this directory get the event.
    pub(crate) root: Option<Arc<str>>,
    /// The required hooks that wanted it when it was accepted.
    pub(crate) required: Vec<HookName>,
    /// Why and since when it is a dead letter, if it is.
    pub(crate) dead: Option<DeadLetter>,
}

/// Why and since when an event is not delivered any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeadLetter {
    pub(crate) reason: DeadLetterReason,
    pub(crate) at: SystemTime,
}

/// Why an event is not delivered any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeadLetterReason {
    /// Its hooks failed each time.
    Tries,
    /// Its workspace is not registered.
    NoWorkspace,
    /// Its workspace was removed, or has another directory now.
    WorkspaceGone,
    /// Nobody has agreed to one of its hooks as it is now, or the hook is missing.
    Untrusted,
    /// hookyard, or the actor of its run, ended during each try.
    Interrupted,
    /// No hook of the worker wants it that has taken it out of a queue.
    Unwanted,
}

impl DeadLetterReason {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Tries => "tries",
            Self::NoWorkspace => "no_workspace",
            Self::WorkspaceGone => "workspace_gone",
            Self::Untrusted => "untrusted",
            Self::Interrupted => "interrupted",
            Self::Unwanted => "unwanted",
        }
    }
}

impl DeliveryProgress {
    /// The first delivery has begun.
    pub(crate) fn first() -> Self {
        Self { deliveries: 1, tries: 1, ..Self::default() }
    }

    /// The progress as it is written.
    pub(crate) fn encode(&self) -> String {
        let names = |names: &[HookName]| names.iter().map(ToString::to_string).collect();
        let dead = self.dead.map(|DeadLetter { reason, at }| {
            let since_epoch = at.duration_since(UNIX_EPOCH).unwrap_or_default();
            WrittenDeath { reason, millis: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX) }
        });
        let written = WrittenProgress {
            v: if self.required.is_empty() { VERSION } else { VERSION_WITH_REQUIRED },
            deliveries: self.deliveries,
            tries: self.tries,
            done: names(&self.done),
            unfinished: names(&self.unfinished),
            error: self.error.clone(),
            root: self.root.clone(),
            required: names(&self.required),
            dead,
        };
        serde_json::to_string(&written).expect("texts and numbers")
    }

    /// Reads the progress.
    pub(crate) fn decode(text: &str) -> Result<Self, RecordError> {
        check_version(text, VERSION).or_else(|_| check_version(text, VERSION_WITH_REQUIRED))?;
        let written: WrittenProgress = serde_json::from_str(text).map_err(|_| RecordError::Damaged)?;
        let names = |names: Vec<String>| names.into_iter().map(HookName::new).collect::<Result<_, _>>();
        let dead = written.dead.map(|WrittenDeath { reason, millis }| {
            let at = UNIX_EPOCH.checked_add(Duration::from_millis(millis)).ok_or(RecordError::Damaged)?;
            Ok(DeadLetter { reason, at })
        });
        Ok(Self {
            deliveries: written.deliveries,
            tries: written.tries,
            done: names(written.done).map_err(|_| RecordError::Damaged)?,
            unfinished: names(written.unfinished).map_err(|_| RecordError::Damaged)?,
            error: written.error,
            root: written.root,
            required: names(written.required).map_err(|_| RecordError::Damaged)?,
            dead: dead.transpose()?,
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenProgress {
    v: u32,
    deliveries: u32,
    tries: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    done: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unfinished: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    required: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dead: Option<WrittenDeath>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDeath {
    reason: DeadLetterReason,
    millis: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halted() -> StoredRun {
        StoredRun {
            halt: Some(StoredHalt {
                reason: Some("budget \"spent\"\n".into()),
                by: HookName::new("claude.user.Stop.1.1").ok(),
            }),
            had_turn: vec![
                TakenTurn { hook: HookName::new("greeting").unwrap(), definition: None },
                TakenTurn {
                    hook: HookName::new("greeting").unwrap(),
                    definition: Some("ab".repeat(32).into()),
                },
            ],
            stops_blocked: 3,
            counts: BTreeMap::new(),
        }
    }

    fn counted() -> StoredRun {
        let mut counts = KeyCounts::default();
        counts.raise("push", 3);
        counts.raise("", 1);
        StoredRun { counts: [(HookName::new("guard").unwrap(), counts)].into(), ..StoredRun::default() }
    }

    #[test]
    fn what_is_written_is_read() {
        for run in [StoredRun::default(), halted(), StoredRun { halt: None, ..halted() }, counted()] {
            assert_eq!(StoredRun::decode(&run.encode()), Ok(run));
        }
    }

    #[test]
    fn the_format_of_this_version_stays() {
        let text = r#"{"v":1,"halt":{"reason":"spent","by":"guard"},"once":["greeting"],"stops":3}"#;
        let run = StoredRun::decode(text).unwrap();
        assert_eq!(run.encode(), text);
        assert_eq!(StoredRun::default().encode(), r#"{"v":1}"#);
        assert_eq!(counted().encode(), r#"{"v":2,"counts":{"guard":{"":1,"push":3}}}"#);
    }

    #[test]
    fn a_record_of_a_later_version_is_refused_whatever_else_it_has() {
        assert_eq!(StoredRun::decode(r#"{"v":2,"halts":[]}"#), Err(RecordError::Version(2)));
        assert_eq!(StoredRun::decode(r#"{"v":4294967296}"#), Err(RecordError::Version(1 << 32)));
    }

    #[test]
    fn progress_that_names_required_hooks_has_a_version_that_earlier_ones_refuse() {
        let first = DeliveryProgress::first();
        let text = r#"{"v":1,"deliveries":1,"tries":1}"#;
        assert_eq!((&*first.encode(), DeliveryProgress::decode(text)), (text, Ok(first.clone())));
        let named = DeliveryProgress { required: vec![HookName::new("guard").unwrap()], ..first };
        let text = r#"{"v":2,"deliveries":1,"tries":1,"required":["guard"]}"#;
        assert_eq!((&*named.encode(), DeliveryProgress::decode(text)), (text, Ok(named)));
        let later = text.replace('2', "3");
        assert_eq!(DeliveryProgress::decode(&later), Err(RecordError::Version(3)));
    }

    #[test]
    fn no_part_of_a_record_is_a_record() {
        let whole = halted().encode();
        for (cut, _) in whole.char_indices() {
            assert_eq!(StoredRun::decode(&whole[..cut]), Err(RecordError::Damaged), "{cut}");
        }
        for other in [r#"{"v":1,"stops":300}"#, r#"{"v":1,"once":["no name"]}"#, r#"{"v":1,"more":1}"#] {
            assert_eq!(StoredRun::decode(other), Err(RecordError::Damaged), "{other}");
        }
    }
}
