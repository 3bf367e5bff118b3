//! What a person agrees to about one hook, and how two such records differ. Pure.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::digests::sha256;
use crate::model::{EventKinds, FailurePolicy, Hook, SecretReference};

/// Everything a person agrees to about one hook. Any difference makes the hook `modified`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrustRecord {
    /// The directory of the workspace, without symbolic links.
    pub(crate) root: String,
    /// The hook's name.
    pub(crate) hook: String,
    pub(super) dialect: String,
    pub(super) scope: String,
    pub(super) priority: i32,
    /// The file with its definition, below the root.
    pub(crate) file: String,
    /// The text of the definition: a hook file, or the entry of an agent's settings.
    pub(crate) definition: String,
    pub(super) handler: String,
    pub(super) policies: RecordedPolicies,
    /// The files it runs. Hooks of one directory share them.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) tree: Arc<[TreeFile]>,
    /// Digests of texts and variables that are read when it is loaded, such as prompts.
    pub(super) texts: Vec<String>,
    pub(crate) grants: Grants,
    /// What it runs or reads that the trust does not cover.
    pub(crate) outside: Vec<String>,
    /// Whether it runs in the workspace and not from its private copy.
    pub(crate) in_place: bool,
}

/// When a hook counts, and what a failure of it counts as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedPolicies {
    pub(super) events: Vec<String>,
    /// The expression that its matcher searches for.
    pub(super) matcher: Option<String>,
    pub(super) host_event: Option<String>,
    pub(super) condition: Option<String>,
    pub(super) on_error: String,
    pub(super) on_timeout: String,
    pub(super) enabled: bool,
    pub(super) detached: bool,
}

/// A file that a hook runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TreeFile {
    /// Its path below the root.
    pub(crate) path: String,
    pub(super) executable: bool,
    pub(crate) sha256: String,
}

/// What a hook gets besides the event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Grants {
    /// Environment variables that it expands.
    pub(crate) environment: Vec<String>,
    /// Secrets that it expands.
    pub(crate) secrets: Vec<String>,
    /// Servers that it connects to.
    pub(crate) hosts: Vec<String>,
    /// Models that it asks.
    pub(crate) models: Vec<String>,
}

impl RecordedPolicies {
    pub(super) fn of(hook: &Hook) -> Self {
        let execution = &hook.execution;
        Self {
            events: names(hook.events),
            matcher: hook.matcher.as_ref().map(|matcher| matcher.expression().to_owned()),
            host_event: execution.host_event.as_deref().map(str::to_owned),
            condition: execution.condition.as_ref().map(|condition| condition.text()),
            on_error: hook.on_error.as_str().to_owned(),
            on_timeout: hook.on_timeout.as_str().to_owned(),
            enabled: hook.enabled,
            detached: execution.delivery == crate::model::Delivery::Detached,
        }
    }

    /// A record with these policies instead of stricter ones; as it is if they are not.
    fn in_place_of_stricter(&self, now: &TrustRecord) -> TrustRecord {
        let mut now = now.clone();
        for (own, current) in
            [(&self.on_error, &mut now.policies.on_error), (&self.on_timeout, &mut now.policies.on_timeout)]
        {
            if severity(own).is_some_and(|own| severity(current).is_some_and(|current| own < current)) {
                current.clone_from(own);
            }
        }
        now
    }

    /// What the absence of the hook counts as. An unknown word was written by a later version: fail closed.
    pub(super) fn on_error(&self) -> FailurePolicy {
        FailurePolicy::from_name(&self.on_error).unwrap_or(FailurePolicy::Deny)
    }
}

/// How strict a policy is; none if a later version wrote it.
fn severity(policy: &str) -> Option<u8> {
    FailurePolicy::from_name(policy).map(|policy| match policy {
        FailurePolicy::Ignore => 0,
        FailurePolicy::Ask => 1,
        FailurePolicy::Deny => 2,
    })
}

fn names(events: EventKinds) -> Vec<String> {
    events.iter().map(|kind| kind.as_str().to_owned()).collect()
}

impl Grants {
    /// The variables and secrets that the values of a hook refer to.
    pub(super) fn of(references: Vec<SecretReference>) -> Self {
        let mut grants = Self::default();
        for reference in references {
            match reference {
                SecretReference::Variable(name) => grants.environment.push(name),
                SecretReference::Secret(name) => grants.secrets.push(name),
            }
        }
        for names in [&mut grants.environment, &mut grants.secrets] {
            names.sort();
            names.dedup();
        }
        grants
    }
}

impl TrustRecord {
    /// Whether it is about this hook.
    #[cfg(any(feature = "cli", feature = "daemon"))]
    pub(super) fn is_about(&self, root: &str, hook: &str) -> bool {
        self.root == root && self.hook == hook
    }

    /// What was agreed to besides the definition and the files, a line for each thing.
    #[cfg(feature = "daemon")]
    pub(crate) fn terms(&self) -> Vec<String> {
        let policies = &self.policies;
        let place = if self.in_place { "in the workspace" } else { "from a private copy" };
        let mut terms = vec![
            term("file", &self.file),
            term("format", &self.dialect),
            term("level", &self.scope),
            term("priority", &self.priority.to_string()),
            term("handler", &self.handler),
            term("events", &policies.events.join(", ")),
            term("on error", &policies.on_error),
            term("on timeout", &policies.on_timeout),
            term("enabled", if policies.enabled { "yes" } else { "no" }),
            term("its answer", if policies.detached { "is not waited for" } else { "is waited for" }),
            term("runs", place),
        ];
        let narrowed = [
            ("event of the agent", &policies.host_event),
            ("matcher", &policies.matcher),
            ("condition", &policies.condition),
        ];
        terms.extend(narrowed.iter().filter_map(|(what, value)| Some(term(what, value.as_deref()?))));
        let listed = [
            ("gets the variable", &self.grants.environment),
            ("gets the secret", &self.grants.secrets),
            ("connects to", &self.grants.hosts),
            ("asks the model", &self.grants.models),
            ("is not covered by the trust", &self.outside),
            ("is read with a text or a variable of SHA-256", &self.texts),
        ];
        for (what, values) in listed {
            terms.extend(values.iter().map(|value| term(what, value)));
        }
        terms
    }

    /// The digest of all of it.
    pub(crate) fn digest(&self) -> String {
        // Serializing plain strings and lists cannot fail.
        sha256(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Returns what is different in `now`, if anything is. Stricter policies are no difference: the operator's settings may
    /// have set them since, and that must not keep a guard from running.
    pub(super) fn confirm(&self, now: &Self) -> Result<(), String> {
        if self == now || (self.policies != now.policies && *self == self.policies.in_place_of_stricter(now))
        {
            return Ok(());
        }
        Err(format!("it has changed since it was trusted: {}", self.changes(now).join(", ")))
    }

    /// What is different in `now`, each as it follows "changed:".
    pub(crate) fn changes(&self, now: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        let mut note = |differs: bool, what: &str| {
            if differs {
                changes.push(what.to_owned());
            }
        };
        note(self.definition != now.definition || self.file != now.file, &now.file);
        note(self.policies != now.policies, "its events, matcher or policies");
        note(self.texts != now.texts, "a text or a variable that it is read with");
        note(self.grants != now.grants, "what it gets");
        note(self.outside != now.outside, "what it reaches outside its files");
        note(self.in_place != now.in_place, "where it runs");
        for file in now.tree.iter() {
            let before = self.tree.iter().find(|known| known.path == file.path);
            note(before != Some(file), &file.path);
        }
        for file in self.tree.iter() {
            note(!now.tree.iter().any(|known| known.path == file.path), &file.path);
        }
        if changes.is_empty() && self != now {
            changes.push("where it stands among the hooks".to_owned());
        }
        changes
    }
}

/// A line of what was agreed to. It stays one line: a name with a line break must not look like another one.
#[cfg(feature = "daemon")]
fn term(what: &str, value: &str) -> String {
    let mut line = format!("{what}: ");
    for character in value.chars() {
        if character.is_control() {
            line.extend(character.escape_unicode());
        } else {
            line.push(character);
        }
    }
    line
}

/// The digest of files that a hook runs, which names their private copy.
pub(super) fn tree_digest(tree: &[TreeFile]) -> String {
    sha256(&serde_json::to_vec(tree).unwrap_or_default())
}

#[cfg(all(test, feature = "cli"))]
pub(super) mod tests {
    use super::*;

    fn file(content: &[u8]) -> TreeFile {
        TreeFile { path: "a.sh".into(), executable: true, sha256: sha256(content) }
    }

    pub(in crate::config::trust) fn record(hook: &str) -> TrustRecord {
        TrustRecord {
            root: "/w".into(),
            hook: hook.into(),
            dialect: "openharness".into(),
            scope: "project".into(),
            priority: 0,
            file: format!(".openharness/hooks/{hook}.yaml"),
            definition: "x".into(),
            handler: "command".into(),
            policies: RecordedPolicies {
                events: vec!["before_tool_dispatch".into()],
                matcher: None,
                host_event: None,
                condition: None,
                on_error: "deny".into(),
                on_timeout: "ignore".into(),
                enabled: true,
                detached: false,
            },
            tree: vec![file(b"a")].into(),
            texts: Vec::new(),
            grants: Grants::default(),
            outside: Vec::new(),
            in_place: false,
        }
    }

    #[test]
    fn every_change_is_named_and_changes_the_digest() {
        let before = record("guard");
        assert_eq!((before.changes(&before), before.digest().len()), (Vec::new(), 64));
        let changed = |change: &dyn Fn(&mut TrustRecord)| {
            let mut now = before.clone();
            change(&mut now);
            assert_ne!(before.digest(), now.digest());
            #[cfg(feature = "daemon")]
            assert_ne!(
                (before.terms(), &before.definition, &before.tree),
                (now.terms(), &now.definition, &now.tree),
                "what differs is shown"
            );
            before.changes(&now)
        };
        assert_eq!(changed(&|now| now.tree = [file(b"b")].into()), ["a.sh"]);
        assert_eq!(changed(&|now| now.tree = [].into()), ["a.sh"]);
        assert_eq!(changed(&|now| now.definition.push('y')), [".openharness/hooks/guard.yaml"]);
        assert_eq!(
            changed(&|now| now.policies.on_error = "ignore".into()),
            ["its events, matcher or policies"]
        );
        assert_eq!(
            changed(&|now| now.policies.on_timeout = "deny".into()),
            ["its events, matcher or policies"]
        );
        assert_eq!(changed(&|now| now.grants.secrets.push("KEY".into())), ["what it gets"]);
        assert_eq!(changed(&|now| now.priority = 1), ["where it stands among the hooks"]);
        let others: [fn(&mut TrustRecord); 16] = [
            |now| now.file.push('x'),
            |now| now.dialect.push('x'),
            |now| now.scope.push('x'),
            |now| now.handler.push('x'),
            |now| now.in_place = true,
            |now| now.outside.push("x".into()),
            |now| now.texts.push("x".into()),
            |now| now.grants.environment.push("x".into()),
            |now| now.grants.hosts.push("x".into()),
            |now| now.grants.models.push("x".into()),
            |now| now.policies.events.push("x".into()),
            |now| now.policies.matcher = Some(String::new()),
            |now| now.policies.host_event = Some("x".into()),
            |now| now.policies.condition = Some("x".into()),
            |now| now.policies.enabled = false,
            |now| now.policies.detached = true,
        ];
        for change in others {
            assert!(!changed(&change).is_empty());
        }
    }

    #[cfg(feature = "daemon")]
    #[test]
    fn a_name_with_a_line_break_is_one_line_of_what_was_agreed_to() {
        let mut hostile = record("guard");
        hostile.grants.hosts.push("a\nruns: from a private copy\u{1b}[2J".into());
        let terms = hostile.terms();
        assert!(
            terms.contains(&"connects to: a\\u{a}runs: from a private copy\\u{1b}[2J".to_owned()),
            "{terms:?}"
        );
    }

    #[test]
    fn stricter_policies_alone_need_no_new_agreement() {
        let before = record("guard");
        let confirmed = |change: &dyn Fn(&mut TrustRecord)| {
            let mut now = before.clone();
            change(&mut now);
            before.confirm(&now).is_ok()
        };
        assert!(confirmed(&|now| now.policies.on_timeout = "ask".into()));
        assert!(confirmed(&|now| now.policies.on_timeout = "deny".into()));
        assert!(!confirmed(&|now| now.policies.on_error = "ask".into()));
        assert!(!confirmed(&|now| now.policies.on_error = "ignore".into()));
        assert!(!confirmed(&|now| now.policies.on_timeout = "explode".into()));
        assert!(!confirmed(&|now| now.policies.enabled = false));
        assert!(!confirmed(&|now| {
            now.policies.on_timeout = "deny".into();
            now.definition.push('y');
        }));
    }

    #[test]
    fn grants_are_the_names_that_values_refer_to() {
        let variable = |name: &str| SecretReference::Variable(name.into());
        let grants = Grants::of(vec![
            variable("B"),
            SecretReference::Secret("K".into()),
            variable("A"),
            variable("B"),
        ]);
        assert_eq!((grants.environment, grants.secrets), (vec!["A".into(), "B".into()], vec!["K".into()]));
    }

    #[test]
    fn an_unknown_policy_fails_closed() {
        let mut policies = record("guard").policies;
        policies.on_error = "explode".into();
        assert_eq!(policies.on_error(), FailurePolicy::Deny);
    }
}
