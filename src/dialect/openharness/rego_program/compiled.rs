//! Policies with the interpreter: what is wrong with them is reported where the hook file names them, and in their own files.

use std::{path::PathBuf, sync::Arc};

use super::super::{
    super::{
        Value,
        catalog::natives,
        suggest::{did_you_mean, nearest},
    },
    lookup::{ReferenceLookup, ResolvedPath},
    rego_input,
    rego_sources::RegoSources,
};
use crate::{
    model::{Capability, Diagnostic, EventKind, RuleProgram, Severity, Target},
    rule::rego::{PolicyMistake, PolicyRules, PolicySource, compile},
};

/// What lists show of the policies, and what judges events.
pub(in crate::dialect::openharness) fn program(
    sources: &RegoSources<'_>,
    capabilities: &[Capability],
    resolver: &dyn ReferenceLookup,
) -> Option<(String, Arc<dyn RuleProgram>)> {
    let policies = sources
        .policies
        .iter()
        .map(|(name, text, _)| PolicySource { name: Arc::clone(name), text: Arc::clone(text) });
    let policies: Vec<PolicySource> = policies.collect();
    let form = sources.input;
    let rules = PolicyRules {
        policies: &policies,
        data: &sources.data,
        is_strict: sources.is_strict,
        input: Box::new(move |draft, place| rego_input::of(draft, place, form)),
        unknown_event,
    };
    let reporter = Reporter { sources, resolver };
    match compile(rules) {
        Ok(compiled) => {
            compiled.doubts.iter().for_each(|doubt| reporter.report(doubt, Severity::Warning));
            let is_allowed =
                reporter.check_capabilities(compiled.changes.tool_input, compiled.changes.any, capabilities);
            is_allowed.then(|| (compiled.shown, Arc::new(compiled.set) as Arc<dyn RuleProgram>))
        }
        Err(mistakes) => {
            for mistake in &mistakes {
                reporter.report(mistake, Severity::Error);
            }
            None
        }
    }
}

/// What to say of a name that neither a kind of event has nor an agent's event.
fn unknown_event(name: &str) -> Option<String> {
    let of_agents = natives().flat_map(|native| native.rows.iter().map(|row| row.name));
    let known: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).chain(of_agents).collect();
    if known.contains(&name) {
        return None;
    }
    let near = nearest(name, &known).map(|near| format!("did you mean `{near}`?"));
    Some(near.unwrap_or_else(|| "write a name as in `PreToolUse` or `before_tool_dispatch`".to_owned()))
}

struct Reporter<'r, 'd> {
    sources: &'r RegoSources<'d>,
    resolver: &'r dyn ReferenceLookup,
}

impl Reporter<'_, '_> {
    /// Reports a mistake in a policy: in the hook file, and in the file of the policy if it has one.
    fn report(&self, mistake: &PolicyMistake, severity: Severity) {
        let place = mistake.place.as_ref();
        let policy = place.and_then(|place| Some((place, self.sources.policies.get(place.policy)?)));
        let Some((place, (name, text, value))) = policy else {
            let (.., value) = &self.sources.policies[0];
            let message = format!("the policy: {}", mistake.message);
            return at(value, value.span(), severity, message, mistake.help.clone());
        };
        if value.name() == "inline" {
            let start = offset(text, place.line, place.column);
            let rest = text.get(start..).unwrap_or_default();
            let length: usize =
                rest.chars().take(place.length).take_while(|c| *c != '\n').map(char::len_utf8).sum();
            let span = value.range_span(start..start + length.max(1));
            let message = format!("the policy: {}", mistake.message);
            return at(value, span, severity, message, mistake.help.clone());
        }
        let message = format!("`{name}` line {}, column {}: {}", place.line, place.column, mistake.message);
        at(value, value.span(), severity, message, mistake.help.clone());
        if let ResolvedPath::Found(root) = self.resolver.directory("") {
            let file: PathBuf = root.join(&**name);
            let diagnostic =
                Diagnostic::of_file(severity, Diagnostic::POLICY, &file, mistake.message.clone());
            let line = text.lines().nth(place.line.saturating_sub(1)).unwrap_or_default();
            let left = line.chars().count().saturating_sub(place.column.saturating_sub(1));
            value.report_elsewhere(Diagnostic {
                line: place.line,
                column: place.column,
                length: place.length.min(left).max(1),
                help: Some(mistake.help.clone()),
                ..diagnostic
            });
        }
    }

    /// Whether the hook may change what the policies change.
    fn check_capabilities(&self, tool_input: bool, any: bool, capabilities: &[Capability]) -> bool {
        let of_targets = Target::ALL.map(Target::capability);
        let wanted = Target::ToolInput.capability();
        let lacks_all = any && !capabilities.iter().any(|capability| of_targets.contains(capability));
        let (name, help) = match (tool_input && !capabilities.contains(&wanted), lacks_all) {
            (true, _) => ("modify", format!("add the capability `{}`", wanted.as_str())),
            (false, true) => ("patch", did_you_mean("capabilities", &of_targets.map(Capability::as_str))),
            (false, false) => return true,
        };
        let (.., value) = &self.sources.policies[0];
        value.error("rego", format!("the changes of `{name}` would be ignored"), help);
        false
    }
}

fn at(value: &Value<'_>, span: super::super::super::Span, severity: Severity, message: String, help: String) {
    if severity == Severity::Error {
        value.error_at(span, "rego", message, help);
    } else {
        value.warn_at(span, "rego", message, help);
    }
}

/// Where a line and a column are in a text, in bytes.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(start..).unwrap_or_default();
    let before: usize = rest.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
    (start + before).min(text.len())
}
