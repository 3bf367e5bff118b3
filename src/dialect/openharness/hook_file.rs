//! From a hook file to a hook: checks that concern several keys.

use std::path::Path;

use super::{
    super::{Document, Mistake, suggest::listed},
    OpenHarness, dialect,
    handlers::PreparedHandler,
    hook_context::HookContext,
    kinds::may_stop,
    lookup::{HookRules, ReferenceLookup},
    raw::{RawHook, Spanned},
    variables,
};
use crate::model::{
    Capability, Diagnostic, EventKind, ExecutionPolicy, FailurePolicy, Hook, HookSource, HookTrust, Scope,
};

/// Reads one hook file.
///
/// Returns the hook if the file has no error, and everything that is wrong with the file.
pub fn read_hook(
    bytes: &[u8],
    file: &Path,
    rules: &HookRules,
    resolver: &dyn ReferenceLookup,
) -> (Option<Hook>, Vec<Diagnostic>) {
    let mut document = match Document::parse(bytes, file) {
        Ok(document) => document,
        Err(diagnostic) => return (None, vec![*diagnostic]),
    };
    let variables = variables::expand_file(&mut document, resolver);
    let hook = document.root().and_then(|root| {
        let mut written = RawHook::read(&root);
        check_together(&document, &mut written);
        let capabilities: Vec<Capability> = written.capabilities.iter().map(|known| known.value).collect();
        let fails = |policy: &Option<Spanned<FailurePolicy>>| {
            policy.as_ref().is_none_or(|policy| policy.value == FailurePolicy::Ignore)
        };
        let context = HookContext {
            events: &written.events,
            matcher: written.matcher.as_ref().map(|matcher| &matcher.value),
            capabilities: &capabilities,
            fails_open: fails(&written.on_error) && fails(&written.on_timeout),
        };
        let ready = written.handler.as_ref().and_then(|handler| handler.prepare(context, rules, resolver));
        hook(&document, file, written, ready?)
    });
    let hook = hook.map(|mut hook| {
        hook.execution.variables = variables;
        hook
    });
    let hook = hook.filter(|_| !document.has_errors());
    (hook, document.into_diagnostics())
}

fn hook(document: &Document<'_>, file: &Path, written: RawHook<'_>, ready: PreparedHandler) -> Option<Hook> {
    let name = written.name?;
    Some(Hook {
        execution: ExecutionPolicy::default(),
        source: HookSource {
            scope: Scope::Project,
            file: Some(file.into()),
            line: document.position(name.span).0,
            position: 0,
            content: None,
            bundle: None,
        },
        name: name.value,
        dialect: &OpenHarness,
        events: written.events.into_iter().collect(),
        matcher: written.matcher.map(|matcher| matcher.value),
        handler: ready.handler,
        capabilities: written.capabilities.into_iter().map(|capability| capability.value).collect(),
        priority: written.priority,
        enabled: written.enabled,
        timeout: ready.timeout,
        max_concurrency: ready.max_concurrency,
        on_error: written.on_error.map(|policy| policy.value).unwrap_or_default(),
        on_timeout: written.on_timeout.map(|policy| policy.value).unwrap_or_default(),
        trust: HookTrust::default(),
    })
}

/// Checks combinations of keys. Without any event every such remark would be noise.
fn check_together(document: &Document<'_>, written: &mut RawHook<'_>) {
    if written.events.is_empty() {
        return;
    }
    check_matcher(document, written);
    for capability in &written.capabilities {
        check_capability(document, capability, &written.events);
    }
    check_policy(document, "on_error", written.on_error.as_ref(), &written.events);
    check_policy(document, "on_timeout", written.on_timeout.as_ref(), &written.events);
    check_rule_policy(document, written);
}

/// Warns of a rule that stops events and does not say what happens where it has no value. What a rule reads comes from the
/// event, so that its sender may bring that about.
fn check_rule_policy(document: &Document<'_>, written: &RawHook<'_>) {
    let is_stoppable = written.events.iter().any(|kind| may_stop(*kind));
    if written.on_error.is_some() || !is_stoppable {
        return;
    }
    let Some(handler) = &written.handler else { return };
    let (condition, message) = match (handler.condition(), handler.policies()) {
        (Some(condition), _) => {
            let name = condition.name();
            (condition, format!("without `on_error`, an event goes on for which `{name}` has no value"))
        }
        (None, Some(policies)) => {
            (policies, "without `on_error`, an event goes on whose policy fails".to_owned())
        }
        (None, None) => return,
    };
    let help = "write `on_error: deny` beside `handler`, or `on_error: ignore` if it may go on";
    document.report(Mistake::warning("policy", condition.key_span(), message).help(help));
}

/// Takes a matcher off that would be ignored: a compaction does have a trigger, which hooks of other dialects
/// match on.
fn check_matcher(document: &Document<'_>, written: &mut RawHook<'_>) {
    if written.events.iter().any(|kind| dialect::matched(*kind).is_some()) {
        return;
    }
    let Some(matcher) = written.matcher.take() else { return };
    let message = "`matcher` is ignored: these events have nothing to match on";
    let mistake = Mistake::warning("matcher", matcher.span, message);
    document.report(mistake.help("remove it; the hook runs for every such event"));
}

fn check_capability(document: &Document<'_>, capability: &Spanned<Capability>, events: &[EventKind]) {
    if events.iter().any(|kind| capability.value.applies_to(*kind)) {
        return;
    }
    let fitting: Vec<&str> = Capability::ALL
        .iter()
        .filter(|other| events.iter().any(|kind| other.applies_to(*kind)))
        .map(|other| other.as_str())
        .collect();
    let name = capability.value.as_str();
    let message = format!("`{name}` does nothing: none of the hook's events has what it rewrites");
    let help = if fitting.is_empty() {
        "remove it; these events cannot be changed".to_owned()
    } else {
        format!("for these events it is {}", listed(&fitting))
    };
    document.report(Mistake::warning("capability", capability.span, message).help(help));
}

fn check_policy(
    document: &Document<'_>,
    key: &str,
    policy: Option<&Spanned<FailurePolicy>>,
    events: &[EventKind],
) {
    let Some(policy) = policy.filter(|policy| policy.value != FailurePolicy::Ignore) else { return };
    if events.iter().any(|kind| may_stop(*kind)) {
        return;
    }
    let message =
        format!("`{key}: {}` does nothing: hooks on these events only watch", policy.value.as_str());
    document.report(Mistake::warning("policy", policy.span, message).help("remove it"));
}
