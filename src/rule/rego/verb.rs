//! The rules of a policy that say something of an event, by their names.

/// What a rule of a policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verb {
    Halt,
    Deny,
    Ask,
    Allow,
    Patch,
    Modify,
    Context,
    Message,
}

/// The names of rules, from what is strictest on. Some things have several names: policies of others use them.
pub(super) const VERBS: [(&str, Verb); 11] = [
    ("halt", Verb::Halt),
    ("deny", Verb::Deny),
    ("block", Verb::Deny),
    ("violation", Verb::Deny),
    ("ask", Verb::Ask),
    ("allow", Verb::Allow),
    ("patch", Verb::Patch),
    ("modify", Verb::Modify),
    ("context", Verb::Context),
    ("add_context", Verb::Context),
    ("message", Verb::Message),
];

impl Verb {
    /// What a rule of this name says.
    pub(super) fn named(name: &str) -> Option<(&'static str, Self)> {
        VERBS.into_iter().find(|(known, _)| *known == name)
    }
}
