//! What hooks may patch, the capability that each patch needs, and the ways to merge a patch.

use std::{borrow::Cow, fmt};

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::value::RawValue;
use smallvec::SmallVec;

use super::{EventKind, Json, JsonError, json::JsonFields};

/// A part of a payload that hooks may patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum Target {
    /// The prompt a person sent.
    Prompt,
    /// The context, with its messages.
    Context,
    /// The request to a model.
    ModelRequest,
    /// The answer of a model.
    ModelResponse,
    /// Which tools a model may choose from.
    ToolConfig,
    /// The input of a tool call.
    ToolInput,
    /// The output of a tool call.
    ToolOutput,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 7] = [
        Self::Prompt,
        Self::Context,
        Self::ModelRequest,
        Self::ModelResponse,
        Self::ToolConfig,
        Self::ToolInput,
        Self::ToolOutput,
    ];

    /// The canonical name of the field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Context => "context",
            Self::ModelRequest => "model_request",
            Self::ModelResponse => "model_response",
            Self::ToolConfig => "tool_config",
            Self::ToolInput => "tool_input",
            Self::ToolOutput => "tool_output",
        }
    }

    /// The target of a canonical field name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.as_str() == name)
    }

    /// The capability a hook needs to patch it.
    pub fn capability(self) -> Capability {
        match self {
            Self::Prompt => Capability::RewritePrompt,
            Self::Context => Capability::RewriteContext,
            Self::ModelRequest => Capability::RewriteModelRequest,
            Self::ModelResponse => Capability::RewriteModelResponse,
            Self::ToolConfig => Capability::RewriteToolConfig,
            Self::ToolInput => Capability::RewriteToolRequest,
            Self::ToolOutput => Capability::RewriteToolResponse,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The large parts of an event's payload, each there if the host sent it or a hook added it.
///
/// Ordered by their target. Most events have one part and most outcomes none, so that those need no memory of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Targets(SmallVec<[(Target, Json); 1]>);

impl Targets {
    /// The part, if it is there.
    pub fn get(&self, target: Target) -> Option<&Json> {
        self.iter().find_map(|(known, value)| (known == target).then_some(value))
    }

    /// Puts a part in.
    pub fn set(&mut self, target: Target, value: Json) {
        match self.0.binary_search_by_key(&target, |(known, _)| *known) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (target, value)),
        }
    }

    /// The parts that are there.
    pub fn iter(&self) -> impl Iterator<Item = (Target, &Json)> {
        self.0.iter().map(|(target, value)| (*target, value))
    }

    /// Whether no part is there.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Targets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (target, value) in self.iter() {
            map.serialize_entry(target.as_str(), value)?;
        }
        map.end()
    }
}

/// What became of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PatchResult {
    /// The payload changed.
    Applied,
    /// The payload already had that value.
    Unchanged,
    /// The hook lacks the capability.
    NoCapability,
    /// No hook may make this change.
    Rejected,
}

impl PatchResult {
    /// Every result.
    pub const ALL: [Self; 4] = [Self::Applied, Self::Unchanged, Self::NoCapability, Self::Rejected];

    /// The name, as in metric labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Unchanged => "unchanged",
            Self::NoCapability => "no_capability",
            Self::Rejected => "rejected",
        }
    }
}

/// Which part of an event a patch is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PatchScope {
    /// The target of the event's kind.
    Target,
    /// Anything else.
    Other,
}

impl PatchScope {
    const ALL: [Self; 2] = [Self::Target, Self::Other];

    /// The scope of a patch in an event of this kind.
    pub fn of(kind: EventKind, target: Option<Target>) -> Self {
        if target.is_some() && target == kind.target() { Self::Target } else { Self::Other }
    }
}

/// How many patches of one invocation had which result, at most 65,535 of each. Fixed in size, so that counting allocates
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PatchResults([[u16; PatchResult::ALL.len()]; PatchScope::ALL.len()]);

impl PatchResults {
    /// Counts one patch.
    pub fn add(&mut self, scope: PatchScope, result: PatchResult) {
        let count = &mut self.0[scope as usize][result as usize];
        *count = count.saturating_add(1);
    }

    /// The counts that are not zero.
    pub fn iter(&self) -> impl Iterator<Item = (PatchScope, PatchResult, u32)> {
        let of_scope = |scope: PatchScope| {
            PatchResult::ALL.map(|result| (scope, result, self.0[scope as usize][result as usize].into()))
        };
        PatchScope::ALL.into_iter().flat_map(of_scope).filter(|(.., count)| *count > 0)
    }
}

/// What a hook may do besides giving its verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum Capability {
    /// Patch the prompt.
    RewritePrompt,
    /// Patch the context.
    RewriteContext,
    /// Patch the model request.
    RewriteModelRequest,
    /// Patch the model response.
    RewriteModelResponse,
    /// Patch the choice of tools.
    RewriteToolConfig,
    /// Patch the tool's input.
    RewriteToolRequest,
    /// Patch the tool's output.
    RewriteToolResponse,
    /// Keep the tool's output from being shown.
    SuppressOutput,
}

impl Capability {
    /// Every capability.
    pub const ALL: [Self; 8] = [
        Self::RewritePrompt,
        Self::RewriteContext,
        Self::RewriteModelRequest,
        Self::RewriteModelResponse,
        Self::RewriteToolConfig,
        Self::RewriteToolRequest,
        Self::RewriteToolResponse,
        Self::SuppressOutput,
    ];

    /// Other names of capabilities.
    pub const ALIASES: [(&'static str, Self); 2] =
        [("patch_tool_input", Self::RewriteToolRequest), ("patch_tool_output", Self::RewriteToolResponse)];

    /// The name as written in hook files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RewritePrompt => "rewrite_prompt",
            Self::RewriteContext => "rewrite_context",
            Self::RewriteModelRequest => "rewrite_model_request",
            Self::RewriteModelResponse => "rewrite_model_response",
            Self::RewriteToolConfig => "rewrite_tool_config",
            Self::RewriteToolRequest => "rewrite_tool_request",
            Self::RewriteToolResponse => "rewrite_tool_response",
            Self::SuppressOutput => "suppress_output",
        }
    }

    /// The capability of a name or of one of its aliases (`patch_tool_input`, `patch_tool_output`).
    pub fn from_name(name: &str) -> Option<Self> {
        let alias = Self::ALIASES.into_iter().find(|(alias, _)| *alias == name);
        alias
            .map(|(_, capability)| capability)
            .or_else(|| Self::ALL.into_iter().find(|capability| capability.as_str() == name))
    }

    /// Whether a hook on this kind of event can make use of it.
    pub fn applies_to(self, kind: EventKind) -> bool {
        match self {
            Self::SuppressOutput => kind == EventKind::AfterToolDispatch,
            _ => kind.target().is_some_and(|target| target.capability() == self),
        }
    }
}

/// A set of capabilities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities(u8);

impl Capabilities {
    /// Whether the capability is in the set.
    pub fn contains(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u8) != 0
    }

    /// The capabilities in order.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.into_iter().filter(move |capability| self.contains(*capability))
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(capabilities: I) -> Self {
        Self(capabilities.into_iter().fold(0, |set, capability| set | 1 << capability as u8))
    }
}

/// A way to merge a patch into the current value.
pub type PatchMerge = fn(Option<&Json>, &Json) -> Result<Json, JsonError>;

/// Two objects merge one level deep and the patch's keys win; anything else is replaced. A `null` is a
/// value like any other and deletes nothing.
///
/// Returns an error if a value is no JSON, which [`Json`] rules out.
pub fn merge_one_level(current: Option<&Json>, patch: &Json) -> Result<Json, JsonError> {
    let (Some(old), Some(new)) = (current.and_then(Json::fields), patch.fields()) else {
        return Ok(patch.clone());
    };
    // Most hooks give all of it, in the order that they were given.
    if old.iter().map(|(key, _)| key).eq(new.iter().map(|(key, _)| key)) {
        return Ok(patch.clone());
    }
    merge(&old, &new, |_, new| Ok(Cow::Borrowed(new)))
}

/// Objects merge at every level; arrays and everything else are replaced. A `null` is a value like any
/// other and deletes nothing.
///
/// Returns an error if a value is no JSON, which [`Json`] rules out.
pub fn merge_deep(current: Option<&Json>, patch: &Json) -> Result<Json, JsonError> {
    let (Some(old), Some(new)) = (current.and_then(Json::fields), patch.fields()) else {
        return Ok(patch.clone());
    };
    merge(&old, &new, |old, new| {
        let merged = merge_deep(Some(&Json::checked(old)), &Json::checked(new))?;
        Ok(Cow::Owned(merged.into_raw()))
    })
}

fn merge<'a>(
    old: &JsonFields<'a>,
    new: &JsonFields<'a>,
    join: impl Fn(&'a RawValue, &'a RawValue) -> Result<Cow<'a, RawValue>, JsonError>,
) -> Result<Json, JsonError> {
    let joined = new
        .iter()
        .map(|(key, value)| match old.get(key) {
            Some(former) => Ok((key, join(former, value)?)),
            None => Ok((key, Cow::Borrowed(value))),
        })
        .collect::<Result<Vec<_>, JsonError>>()?;
    let mut merged = JsonFields::default();
    for (key, value) in old.iter() {
        merged.set(Cow::Borrowed(key), value);
    }
    for (key, value) in &joined {
        merged.set(Cow::Borrowed(key), value);
    }
    Json::of(&merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn parts_are_found_replaced_and_in_order_whichever_came_first() {
        let mut targets = Targets::default();
        assert!(targets.is_empty());
        for target in [Target::ToolOutput, Target::Prompt, Target::ToolInput, Target::Prompt] {
            targets.set(target, json(&format!(r#""{target}""#)));
        }
        let order: Vec<Target> = targets.iter().map(|(target, _)| target).collect();
        assert_eq!(order, [Target::Prompt, Target::ToolInput, Target::ToolOutput]);
        assert_eq!(targets.get(Target::ToolInput), Some(&json(r#""tool_input""#)));
        assert_eq!(targets.get(Target::Context), None);
    }

    #[test]
    fn one_level_keeps_untouched_keys_and_replaces_the_rest() {
        let cases = [
            (r#"{"a":1,"b":{"x":1}}"#, r#"{"b":{"y":2},"c":3}"#, r#"{"a":1,"b":{"y":2},"c":3}"#),
            (r#"{"a":1.50}"#, r#"{"b":null}"#, r#"{"a":1.50,"b":null}"#),
            (r#"{"a":1}"#, "[1]", "[1]"),
            (r#""text""#, r#"{"a":1}"#, r#"{"a":1}"#),
        ];
        for (current, patch, expected) in cases {
            assert_eq!(merge_one_level(Some(&json(current)), &json(patch)).unwrap(), json(expected));
        }
        assert_eq!(merge_one_level(None, &json("1")).unwrap(), json("1"));
    }

    #[test]
    fn deep_merges_objects_and_replaces_arrays() {
        let current = json(r#"{"a":{"x":1,"y":[1,2]},"messages":[1]}"#);
        let patch = json(r#"{"a":{"y":[3]},"messages":[],"n":{"m":1}}"#);
        let expected = json(r#"{"a":{"x":1,"y":[3]},"messages":[],"n":{"m":1}}"#);
        assert_eq!(merge_deep(Some(&current), &patch).unwrap(), expected);
    }

    #[test]
    fn capabilities_go_with_the_targets_of_kinds() {
        assert!(Capability::RewriteToolRequest.applies_to(EventKind::BeforeToolDispatch));
        assert!(!Capability::RewriteToolRequest.applies_to(EventKind::AfterToolDispatch));
        assert!(Capability::SuppressOutput.applies_to(EventKind::AfterToolDispatch));
        assert_eq!(Capability::from_name("patch_tool_input"), Some(Capability::RewriteToolRequest));
        assert_eq!(Capability::from_name("rewrite_everything"), None);
    }
}
