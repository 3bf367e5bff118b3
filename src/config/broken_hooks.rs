//! What takes the place of hooks whose file is broken: their last good rules, or a block of the events that they guarded.

use std::{collections::BTreeSet, path::Path, time::Duration};

use serde::{Deserialize, Serialize};

use super::workspace_options::BrokenFilePolicy;
use crate::{
    dialect,
    model::{
        Capabilities, CommandHandler, CommandLine, CommandMode, Delivery, Diagnostic, DialectName, EventKind,
        ExecutionPolicy, FailurePolicy, Handler, Hook, HookBundle, HookName, HookSource, HookTrust, Matcher,
        Scope, Severity, TrustState,
    },
    registry::RequiredEvents,
};

/// Why a hook of a broken file does not run, with `broken: deny`.
const DENIED: &str = "its file is broken, and the setting `broken` is `deny`; run `hookyard check`";

/// Why a hook does not run whose former rule cannot be used either.
const UNUSABLE: &str = "its file is broken, and what it was before cannot be used; run `hookyard check`";

/// Why events are blocked while nobody knows which hooks were agreed to.
const UNKNOWN_TRUST: &str =
    "the record of trust cannot be used, so nobody knows which guards are missing; run `hookyard check`";

/// What is kept of a hook that could stop events, besides its file: when it counts, and what its failure counts as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedHook {
    pub(super) name: String,
    pub(super) dialect: String,
    pub(super) scope: String,
    pub(super) events: Vec<String>,
    pub(super) host_event: Option<String>,
    /// The expression that its matcher searches for.
    pub(super) matcher: Option<String>,
    pub(super) on_error: String,
}

impl RecordedHook {
    /// What there is to keep of a hook; nothing if it could not stop an event.
    pub(super) fn of(hook: &Hook) -> Option<Self> {
        could_stop(hook).then(|| Self {
            name: hook.name.to_string(),
            dialect: hook.dialect.name().to_string(),
            scope: hook.source.scope.to_string(),
            events: hook.events.iter().map(|kind| kind.as_str().to_owned()).collect(),
            host_event: hook.execution.host_event.as_deref().map(str::to_owned),
            matcher: hook.matcher.as_ref().map(|matcher| matcher.expression().to_owned()),
            on_error: hook.on_error.as_str().to_owned(),
        })
    }
}

/// A hook that never runs, in the place of one whose file is broken.
pub(super) fn placeholder(recorded: &RecordedHook, file: &Path) -> Option<Hook> {
    let dialect = DialectName::ALL.iter().find(|name| name.as_str() == recorded.dialect);
    let scopes = [Scope::Local, Scope::User, Scope::Managed];
    let scope = scopes.into_iter().find(|scope| scope.as_str() == recorded.scope);
    // An unknown word was written by a later version: fail closed.
    let policy = FailurePolicy::from_name(&recorded.on_error).unwrap_or(FailurePolicy::Deny);
    let line = CommandLine::Shell("(broken)".to_owned());
    Some(Hook {
        name: HookName::new(&recorded.name).ok()?,
        dialect: dialect::named(dialect.copied().unwrap_or(DialectName::OpenHarness)),
        events: recorded.events.iter().filter_map(|name| EventKind::from_name(name)).collect(),
        matcher: recorded.matcher.as_deref().and_then(|expression| Matcher::javascript(expression).ok()),
        handler: Handler::Command(CommandHandler {
            line,
            cwd: file.parent().unwrap_or(file).to_owned(),
            environment: Vec::new(),
            mode: CommandMode::Oneshot,
            sandbox: None,
        }),
        capabilities: Capabilities::default(),
        priority: 0,
        enabled: true,
        timeout: Duration::from_secs(1),
        max_concurrency: None,
        on_error: policy,
        on_timeout: policy,
        execution: ExecutionPolicy {
            host_event: recorded.host_event.as_deref().map(Into::into),
            ..ExecutionPolicy::default()
        },
        source: HookSource {
            scope: scope.unwrap_or(Scope::Project),
            file: Some(file.into()),
            line: 0,
            position: 0,
            content: None,
            bundle: None,
        },
        trust: HookTrust::refused(TrustState::Broken, UNUSABLE),
    })
}

/// Whether a hook only takes the place of one whose rule is not known any more.
pub(crate) fn is_placeholder(hook: &Hook) -> bool {
    hook.trust.refusal() == Some(UNUSABLE)
}

/// Takes the hooks away that only take the place of others.
pub(crate) fn take_placeholders(hooks: &mut Vec<Hook>) -> Vec<Hook> {
    let (placeholders, others) = std::mem::take(hooks).into_iter().partition(is_placeholder);
    *hooks = others;
    placeholders
}

/// Adds those whose file, or whatever is below it, has no rules in force.
pub(crate) fn add_placeholders(hooks: &mut Vec<Hook>, placeholders: Vec<Hook>) {
    for placeholder in placeholders {
        let file = placeholder.source.file.as_deref();
        let has_rules = hooks.iter().any(|hook| {
            let own = hook.source.file.as_deref().zip(file);
            !is_placeholder(hook) && own.is_some_and(|(own, file)| own.starts_with(file))
        });
        if !has_rules {
            add_under_free_name(hooks, Some(placeholder));
        }
    }
}

/// Adds a hook, under another name where one that is not its rule has that.
pub(super) fn add_under_free_name(hooks: &mut Vec<Hook>, hook: Option<Hook>) {
    let Some(mut hook) = hook else { return };
    hook.name = hook.name.free_variant("broken", |name| hooks.iter().any(|known| known.name == *name));
    hooks.push(hook);
}

/// Has hooks of broken files do as the operator says. With `deny`, those that could stop an event do not run, and block
/// it. `files` are the broken ones whose former hooks stay.
pub(crate) fn apply_policy<'f>(
    policy: BrokenFilePolicy,
    hooks: &mut [Hook],
    files: impl Iterator<Item = &'f Path>,
) {
    if policy == BrokenFilePolicy::Keep {
        return;
    }
    let files: BTreeSet<&Path> = files.collect();
    for hook in hooks.iter_mut().filter(|hook| could_stop(hook) && hook.source.bundle.is_none()) {
        let is_kept = hook.source.file.as_deref().is_some_and(|file| files.contains(file));
        if is_kept && hook.trust.approval().is_some() {
            hook.trust = HookTrust::refused(TrustState::Broken, DENIED);
        }
        if hook.trust.state() == Some(TrustState::Broken) {
            hook.on_error = FailurePolicy::Deny;
            hook.on_timeout = FailurePolicy::Deny;
        }
    }
}

/// Whether a hook could have stopped an event.
fn could_stop(hook: &Hook) -> bool {
    hook.enabled && hook.execution.delivery == Delivery::Awaited && !RequiredEvents::of(hook).is_empty()
}

/// Adds a block of all that can be stopped for a broken file: nobody knows whether it had guards.
pub(super) fn add_block(hooks: &mut Vec<Hook>, file: &Path, scope: Scope) {
    add_under_free_name(hooks, block_of_all("broken-file", file, scope));
}

/// The error about a broken file of which nothing is known.
pub(super) fn unknown_rules(file: &Path) -> Diagnostic {
    let message =
        "nothing is known of the rules that the file had, so every event that can be stopped is blocked";
    Diagnostic::of_file(Severity::Error, Diagnostic::LAST_GOOD, file, message)
        .help("correct the file, or remove it if it is not wanted")
}

/// Adds a block of all that can be stopped while the record of trust cannot be used: nobody knows which guards it had.
pub(super) fn add_block_of_trust(hooks: &mut Vec<Hook>, record: &Path) {
    let block = block_of_all("trust-record", record, Scope::User);
    let trust = HookTrust::refused(TrustState::Broken, UNKNOWN_TRUST);
    add_under_free_name(hooks, block.map(|block| Hook { trust, ..block }));
}

/// A hook that never runs and has every event that can be stopped denied or asked about, in the place of a bundle that
/// cannot be used or is stale.
pub(super) fn block_of_bundle(
    place: &Path,
    policy: FailurePolicy,
    why: &str,
    bundle: HookBundle,
) -> Option<Hook> {
    let mut block = block_of_all("bundle", place, Scope::Managed)?;
    block.trust = HookTrust::refused(TrustState::Broken, why);
    block.on_error = policy;
    block.on_timeout = policy;
    block.source.bundle = Some(bundle.into());
    Some(block)
}

fn block_of_all(name: &str, file: &Path, scope: Scope) -> Option<Hook> {
    let events = RequiredEvents::all().kinds.iter().map(|kind| kind.as_str().to_owned());
    let hook = RecordedHook {
        name: name.to_owned(),
        dialect: DialectName::OpenHarness.to_string(),
        scope: scope.to_string(),
        events: events.collect(),
        host_event: None,
        matcher: None,
        on_error: FailurePolicy::Deny.as_str().to_owned(),
    };
    placeholder(&hook, file)
}
