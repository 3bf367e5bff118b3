//! The reference for plans: which hooks run, in which order and which stages, without hookyard's rules.

use hookyard::model::{DialectName, EventKind, Scope};

use crate::course::{
    double::{Double, Matching, Running},
    scenario::{Rule, Scenario, Switch},
};

/// Why a hook does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Disabled,
    OtherEvents,
    NotMatched,
    NothingToMatch,
}

/// The hooks of a scenario in their total order: source, dialect, priority, file, position, name.
pub(crate) fn ordered(scenario: &Scenario) -> Vec<&Rule> {
    let scope = |scope| match scope {
        Scope::Host => 0,
        Scope::Managed => 1,
        Scope::User => 2,
        Scope::Project => 3,
        Scope::Local => 4,
    };
    let dialect = |name| match name {
        DialectName::Canonical => 0,
        DialectName::OpenHarness => 1,
        other => panic!("no scenario has hooks of {other}"),
    };
    let mut rules: Vec<&Rule> = scenario.hooks.iter().collect();
    rules.sort_by_key(|rule| {
        (scope(rule.scope), dialect(rule.dialect.name), rule.priority, rule.file, rule.position, rule.name)
    });
    rules
}

/// Every reason for which a hook does not run; none if it runs.
pub(crate) fn reasons_to_skip(scenario: &Scenario, rule: &Rule) -> Vec<Why> {
    let mut why = Vec::new();
    if rule.switch == Switch::Off {
        why.push(Why::Disabled);
    }
    if !rule.events.contains(&scenario.kind) {
        why.push(Why::OtherEvents);
    }
    let looks = rule.dialect.matching == Matching::AsTheKind && scenario.kind.match_field().is_some();
    if let (Some(pattern), true) = (rule.matcher, looks) {
        match scenario.text {
            None => why.push(Why::NothingToMatch),
            Some(text) if !accepts(pattern, text) => why.push(Why::NotMatched),
            Some(_) => {}
        }
    }
    why
}

fn accepts(pattern: &str, text: &str) -> bool {
    match pattern {
        "" => true,
        "^Bash$" => text == "Bash",
        "^(Bash|Read)$" => text == "Bash" || text == "Read",
        "ea" => text.contains("ea"),
        "^mcp__.*$" => text.starts_with("mcp__"),
        "sh|query" => text.contains("sh") || text.contains("query"),
        _ => panic!("the model does not know the pattern {pattern:?}"),
    }
}

/// The stages: a serial hook alone; parallel hooks in a row together, an interceptor's only with its dialect.
pub(crate) fn stages(scenario: &Scenario) -> Vec<Vec<&Rule>> {
    let mut stages: Vec<Vec<&Rule>> = Vec::new();
    for rule in ordered(scenario) {
        if !reasons_to_skip(scenario, rule).is_empty() {
            continue;
        }
        let joins = stages.last().is_some_and(|stage| {
            let neighbour = stage[0];
            let both_parallel = [neighbour, rule].iter().all(|rule| !is_serial(rule.dialect, scenario.kind));
            let one_dialect = neighbour.dialect.name == rule.dialect.name;
            both_parallel && (one_dialect || part(scenario.kind) == Part::OnlyWatches)
        });
        match stages.last_mut() {
            Some(stage) if joins => stage.push(rule),
            _ => stages.push(vec![rule]),
        }
    }
    stages
}

/// What hooks on a kind of event may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Intercepts,
    OnlyWatches,
}

/// What hooks may do on this kind of event.
pub(crate) fn part(kind: EventKind) -> Part {
    use EventKind as K;
    match kind {
        K::SessionStarted
        | K::SessionEnded
        | K::ToolFailed
        | K::Notification
        | K::SubagentStarted
        | K::RunCompleted
        | K::RunFailed
        | K::HostEvent => Part::OnlyWatches,
        _ => Part::Intercepts,
    }
}

/// Whether hooks of a dialect run one after the other.
pub(crate) fn is_serial(dialect: &Double, kind: EventKind) -> bool {
    match dialect.running {
        Running::Serial => true,
        Running::Parallel => false,
        Running::AsTheKind => part(kind) == Part::Intercepts,
    }
}
