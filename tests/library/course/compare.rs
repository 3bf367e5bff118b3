//! Compares what became of a scenario with the reference, part by part.

use std::collections::BTreeMap;

use hookyard::{
    model::{HookName, HookReport, Outcome, Target},
    registry::SkipReason,
};
use proptest::prelude::*;

use crate::course::{
    drive::{Observed, Stage, duration},
    model::{Error, Expected, Reason, Report},
    planned::Why,
    scenario::Scenario,
    tree::Tree,
};

/// What the host is told.
pub(crate) fn check_outcome(outcome: &Outcome, expected: &Expected) -> Result<(), TestCaseError> {
    let decision = &expected.decision;
    prop_assert_eq!(outcome.verdict, decision.verdict);
    prop_assert_eq!(outcome.by.as_ref().map(HookName::as_str), decision.by);
    prop_assert!(
        gives(decision.reason, outcome.reason.as_deref()),
        "{:?}, not {:?}",
        outcome.reason,
        decision
    );
    let patched: BTreeMap<_, _> =
        outcome.patched.iter().map(|(t, value)| (t, value.as_str().to_owned())).collect();
    prop_assert_eq!(patched, as_text(&expected.patched));
    let notes: Vec<_> =
        outcome.notes.iter().map(|note| (note.hook.as_str(), note.kind, &*note.text)).collect();
    prop_assert_eq!(notes, expected.notes.clone());
    prop_assert_eq!(outcome.suppress_output, expected.suppressed);
    prop_assert_eq!(outcome.snapshot_version, 7);
    Ok(())
}

/// One report for each invocation, in plan order.
pub(crate) fn check_reports(
    scenario: &Scenario,
    observed: &Observed,
    expected: &Expected,
) -> Result<(), TestCaseError> {
    let of = |reports: &[HookReport]| reports.iter().map(|it| it.hook.to_string()).collect::<Vec<_>>();
    prop_assert_eq!(
        of(&observed.outcome.hooks),
        observed.ran.iter().flat_map(|(names, _)| names.clone()).collect::<Vec<_>>()
    );
    for (report, expected) in observed.outcome.hooks.iter().zip(&expected.reports) {
        prop_assert_eq!(report.hook.as_str(), expected.hook);
        prop_assert_eq!(report.handler, scenario.rule(expected.hook).hook().handler.kind());
        prop_assert_eq!(
            (report.ended, report.verdict),
            (expected.ended, expected.verdict),
            "{}",
            expected.hook
        );
        match &expected.error {
            Error::Absent => prop_assert_eq!(&report.error, &None),
            Error::Says(message) => prop_assert_eq!(report.error.as_deref(), Some(*message)),
            Error::OfCancellation => prop_assert!(report.error.is_some()),
        }
        if expected.error != Error::OfCancellation {
            prop_assert_eq!(report.duration, duration(expected.step));
        }
        check_warnings(report, expected)?;
    }
    Ok(())
}

/// A hook's own warnings come first; then there is one for everything of it that was not heeded.
fn check_warnings(report: &HookReport, expected: &Report) -> Result<(), TestCaseError> {
    let own = expected.warnings.len().min(report.warnings.len());
    prop_assert_eq!(&report.warnings[..own], &expected.warnings[..]);
    let ours = &report.warnings[own..];
    for word in &expected.complaints {
        prop_assert!(
            ours.iter().any(|warning| warning.contains(word)),
            "no warning about {}: {:?}",
            word,
            report
        );
    }
    Ok(())
}

fn gives(expected: Reason, reason: Option<&str>) -> bool {
    match (expected, reason) {
        (Reason::Absent | Reason::Unsaid(_), None) => true,
        (Reason::Said(said), Some(reason)) => reason == said,
        (Reason::Unsaid(hook), Some(reason)) => reason.contains(hook),
        (Reason::Failure { hook, message }, Some(reason)) => {
            reason.contains(hook) && reason.contains(message)
        }
        (Reason::Absent, Some(_)) | (Reason::Said(_) | Reason::Failure { .. }, None) => false,
    }
}

/// The reason for which a hook was left out, in the model's words, after a look at what it names.
pub(crate) fn why(skip: &SkipReason, scenario: &Scenario) -> Why {
    match skip {
        SkipReason::Disabled => Why::Disabled,
        SkipReason::OtherEvents(kind) => {
            assert_eq!(*kind, scenario.kind);
            Why::OtherEvents
        }
        SkipReason::SwitchedOff(_)
        | SkipReason::OtherHostEvent(_)
        | SkipReason::RunByHost(_)
        | SkipReason::SameAs(_)
        | SkipReason::LacksCondition(_) => {
            panic!("no hook of a scenario is left out for this")
        }
        SkipReason::NotAccepted { field, value, pattern: _ } => {
            assert_eq!((*field, Some(&**value)), (field_of(scenario), scenario.text));
            Why::NotMatched
        }
        SkipReason::NothingToMatch { field } => {
            assert_eq!(*field, field_of(scenario));
            Why::NothingToMatch
        }
    }
}

fn field_of(scenario: &Scenario) -> &'static str {
    scenario.kind.match_field().expect("a kind with something to match on").as_str()
}

fn as_text(payload: &BTreeMap<Target, Tree>) -> BTreeMap<Target, String> {
    payload.iter().map(|(target, value)| (*target, value.to_string())).collect()
}

/// The stages that must run, with what their hooks must be told.
pub(crate) fn stages_as_text(expected: &Expected) -> Vec<Stage> {
    let stage = |(names, told): &(Vec<&str>, _)| {
        (names.iter().map(|name| (*name).to_owned()).collect(), as_text(told))
    };
    expected.ran.iter().map(stage).collect()
}
