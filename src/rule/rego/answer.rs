//! What the values of a policy's rules come to: a decision with its reason, changes, and notes.

use regorus::Value;

use super::{
    package::Said,
    size::{self, LONGEST_JSON},
    verb::Verb,
};
use crate::model::{Ended, Failure, HookDecision, Json, NoteKind, Patch, Reply, Target};

/// The most entries of one rule that are read.
const MOST_ENTRIES: usize = 64;

/// The longest reason or note, in bytes.
const LONGEST_TEXT: usize = 16 << 10;

/// The keys of an entry that say why, from the most usual one on.
const REASON_KEYS: [&str; 4] = ["reason", "msg", "message", "question"];

/// The priority of a change that has none.
const USUAL_PRIORITY: f64 = 50.0;

/// One thing that a rule says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// Why, or the text of a note.
    pub(super) reason: Option<String>,
    /// The id that the policy gives it.
    pub(super) rule_id: Option<String>,
    /// Whether the text was too long, and only its beginning is here.
    pub(super) is_shortened: bool,
}

/// What a hook answers, and what was wrong with the values of its rules.
pub(super) struct Answer {
    pub(super) reply: Reply,
    pub(super) failure: Option<Failure>,
}

/// The values in the pairs of a package's rule that asks all others, by their names.
pub(super) fn pairs(pairs: &Value, verbs: &[(&'static str, Verb)]) -> Vec<((&'static str, Verb), Value)> {
    let Ok(pairs) = pairs.as_set() else { return Vec::new() };
    let found = pairs.iter().filter_map(|pair| {
        let pair = pair.as_array().ok()?;
        let name = pair.first()?.as_string().ok()?;
        let verb = verbs.iter().find(|(known, _)| *known == &**name)?;
        Some((*verb, pair.get(1)?.clone()))
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|((_, verb), _)| *verb);
    found
}

/// What all of it comes to.
pub(super) fn reply_of(said: &[Said], has_tool_input: bool) -> Answer {
    let mut reply = Reply::proceed();
    let mut failure = None;
    let mut reasons: Vec<(Verb, Vec<String>)> = Vec::new();
    let mut changes: Vec<(f64, serde_json::Value)> = Vec::new();
    // The bytes of all changes, which become JSON each.
    let mut bytes = 0;
    for one in said {
        if matches!(one.verb, Verb::Patch | Verb::Modify) {
            bytes = size::length(bytes, &one.value);
        }
        let read = match one.verb {
            Verb::Patch | Verb::Modify if bytes > LONGEST_JSON => {
                Err(format!("changes the event to more than {} MiB", LONGEST_JSON >> 20))
            }
            Verb::Patch => patches(one).map(|patches| reply.patches.extend(patches)),
            Verb::Modify => modifications(one).map(|found| changes.extend(found)),
            Verb::Context | Verb::Message => notes(one).map(|notes| reply.notes.extend(notes)),
            Verb::Halt | Verb::Deny | Verb::Ask | Verb::Allow => entries(one).map(|entries| {
                if !entries.is_empty() {
                    reasons
                        .push((one.verb, entries.into_iter().map(|entry| reason_of(one, entry)).collect()));
                }
            }),
        };
        if let Err(why) = read {
            let message = format!("`{}` of `{}` {why}", one.name, one.package);
            failure.get_or_insert_with(|| Failure::new(Ended::Failed, message));
        }
    }
    if let Some(strictest) = reasons.iter().map(|(verb, _)| *verb).min() {
        let of_it =
            reasons.into_iter().filter(|(verb, _)| *verb == strictest).flat_map(|(_, reasons)| reasons);
        reply.decision = decision(strictest, joined(of_it));
    }
    if has_tool_input && !changes.is_empty() {
        match merged(changes) {
            Ok(json) => reply.patches.push(Patch::Target(Target::ToolInput, json)),
            Err(why) => {
                failure.get_or_insert_with(|| Failure::new(Ended::Failed, format!("`modify` {why}")));
            }
        }
    }
    Answer { reply, failure }
}

fn decision(verb: Verb, reason: String) -> HookDecision {
    let reason = Some(reason);
    match verb {
        Verb::Halt => HookDecision::Halt(reason),
        Verb::Deny => HookDecision::Block(reason),
        Verb::Ask => HookDecision::Ask(reason),
        Verb::Allow => HookDecision::Allow(reason),
        Verb::Patch | Verb::Modify | Verb::Context | Verb::Message => HookDecision::None,
    }
}

fn reason_of(one: &Said, entry: Entry) -> String {
    let by_rule = || match entry.rule_id {
        Some(id) => format!("`{}` of the policy `{}` ({id})", one.name, one.package),
        None => format!("`{}` of the policy `{}`", one.name, one.package),
    };
    entry.reason.unwrap_or_else(by_rule)
}

/// Reasons in their order, each once, a line each.
fn joined(reasons: impl Iterator<Item = String>) -> String {
    let mut known: Vec<String> = Vec::new();
    for reason in reasons {
        if !known.contains(&reason) {
            known.push(reason);
        }
    }
    let mut text = known.join("\n");
    text.truncate(text.floor_char_boundary(LONGEST_TEXT));
    text
}

/// What a rule says: each entry of a set or a list, or itself. An object whose keys are texts and whose values are true is a
/// set, as older policies write it.
///
/// Returns what is wrong with a value of another kind.
pub(super) fn entries(one: &Said) -> Result<Vec<Entry>, String> {
    match &one.value {
        Value::Undefined | Value::Bool(false) => Ok(Vec::new()),
        Value::Set(set) => set.iter().take(MOST_ENTRIES).map(entry).collect(),
        Value::Array(array) => array.iter().take(MOST_ENTRIES).map(entry).collect(),
        Value::Object(object) if object.is_empty() => Ok(Vec::new()),
        Value::Object(object) if object.iter().all(|(_, value)| *value == Value::Bool(true)) => {
            object.iter().take(MOST_ENTRIES).map(|(key, _)| entry(key)).collect()
        }
        other => entry(other).map(|entry| vec![entry]),
    }
}

fn entry(value: &Value) -> Result<Entry, String> {
    match value {
        Value::Bool(true) => Ok(Entry::default()),
        Value::String(text) => Ok(Entry {
            reason: Some(shortened(text)),
            rule_id: None,
            is_shortened: text.len() > LONGEST_TEXT,
        }),
        Value::Object(_) => {
            let field = |name: &str| &value[&Value::from(name)];
            let reason = REASON_KEYS.into_iter().map(field).find(|value| **value != Value::Undefined);
            let (reason, is_shortened) = match reason {
                None => (None, false),
                Some(Value::String(text)) => (Some(shortened(text)), text.len() > LONGEST_TEXT),
                Some(other) => return Err(format!("has a reason that is {}, not a string", kind(other))),
            };
            let rule_id = match field("rule_id") {
                Value::String(id) => Some(shortened(id)),
                _ => None,
            };
            Ok(Entry { reason, rule_id, is_shortened })
        }
        other => Err(format!("gives {}, not a string or an object with a `reason`", kind(other))),
    }
}

fn notes(one: &Said) -> Result<Vec<(NoteKind, String)>, String> {
    let kind = if one.verb == Verb::Context { NoteKind::AdditionalContext } else { NoteKind::SystemMessage };
    let entries = entries(one)?;
    if entries.iter().any(|entry| entry.is_shortened) {
        return Err(format!("gives a text of more than {} KiB", LONGEST_TEXT >> 10));
    }
    let texts = entries.into_iter().filter_map(|entry| entry.reason);
    Ok(texts.filter(|text| !text.is_empty()).map(|text| (kind, text)).collect())
}

/// The changes of a rule `patch`: an object with the names of parts of the event, or several of them.
fn patches(one: &Said) -> Result<Vec<Patch>, String> {
    let objects: Vec<&Value> = match &one.value {
        Value::Undefined => Vec::new(),
        Value::Set(set) => set.iter().take(MOST_ENTRIES).collect(),
        Value::Array(array) => array.iter().take(MOST_ENTRIES).collect(),
        other => vec![other],
    };
    let mut patches = Vec::new();
    for object in objects {
        let Ok(fields) = object.as_object() else {
            return Err(format!("gives {}, not an object with parts of the event", kind(object)));
        };
        for (name, value) in fields.iter() {
            let name = name.as_string().map_err(|_| "has a key that is no string".to_owned())?;
            patches.push(match Target::from_name(name) {
                Some(target) => Patch::Target(target, json(value)?),
                None => Patch::Unsupported(shortened(name)),
            });
        }
    }
    Ok(patches)
}

/// The changes of a rule `modify`, with their priorities.
fn modifications(one: &Said) -> Result<Vec<(f64, serde_json::Value)>, String> {
    let objects: Vec<&Value> = match &one.value {
        Value::Undefined => Vec::new(),
        Value::Set(set) => set.iter().take(MOST_ENTRIES).collect(),
        Value::Array(array) => array.iter().take(MOST_ENTRIES).collect(),
        other => vec![other],
    };
    let mut found = Vec::new();
    for object in objects {
        let changed = &object[&Value::from("updated_input")];
        if changed.as_object().is_err() {
            return Err("gives an entry without an object `updated_input`".to_owned());
        }
        let changed = serde_json::from_str(json(changed)?.as_str()).map_err(|error| error.to_string())?;
        let priority = object[&Value::from("priority")].as_f64().unwrap_or(USUAL_PRIORITY);
        found.push((priority, changed));
    }
    Ok(found)
}

/// All changes in one. Of several to the same field the one with the highest priority counts.
fn merged(mut changes: Vec<(f64, serde_json::Value)>) -> Result<Json, String> {
    changes.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut all = serde_json::Value::default();
    for (_, change) in changes {
        merge(&mut all, change);
    }
    Json::of(&all).map_err(|error| error.to_string())
}

fn merge(into: &mut serde_json::Value, change: serde_json::Value) {
    match (into, change) {
        (serde_json::Value::Object(into), serde_json::Value::Object(change)) => {
            for (key, value) in change {
                merge(into.entry(key).or_insert(serde_json::Value::Null), value);
            }
        }
        (into, change) => *into = change,
    }
}

fn json(value: &Value) -> Result<Json, String> {
    let text = value.to_json_str().map_err(|error| error.to_string())?;
    Json::parse(&text).map_err(|error| error.to_string())
}

fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST_TEXT)].to_owned()
}

/// What a value is, as messages name it.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Set(_) => "a set",
        Value::Object(_) => "an object",
        Value::Undefined => "nothing",
    }
}
