//! The rules by which an event passes through its hooks: each with an example, then all against a reference model.

#![expect(clippy::trivially_copy_pass_by_ref, reason = "hooks hold their dialect by reference")]

mod compare;
mod double;
mod drive;
mod model;
mod planned;
mod random;
mod scenario;
mod tree;

use hookyard::model::{Ended, EventKind, FailurePolicy, HookName, Outcome, Scope, Target, Verdict};
use proptest::prelude::*;

use compare::{check_outcome, check_reports, stages_as_text, why};
use double::{Double, Ends, Running};
use drive::{Observed, drive, explain};
use random::scenarios;
use scenario::{Change, End, Rule, Says, Scenario};

#[test]
fn an_event_that_no_hook_wants_is_done_at_once() {
    let other = Rule { events: vec![EventKind::RunFailed], ..Rule::new("other") };
    let run = take(&before_tool().with(other));
    assert_eq!((run.outcome.verdict, run.ran.len(), run.outcome.hooks.len()), (Verdict::Proceed, 0, 0));
}

#[test]
fn hooks_are_ordered_by_source_priority_file_and_position() {
    let (a, b) = (Some("/srv/shop/hooks/a.yaml"), Some("/srv/shop/hooks/b.yaml"));
    let scenario = before_tool()
        .with(Rule { file: b, ..Rule::new("sixth") })
        .with(Rule { file: a, position: 1, ..Rule::new("fifth") })
        .with(Rule { file: a, position: 0, ..Rule::new("fourth") })
        .with(Rule { file: b, priority: -1, ..Rule::new("third") })
        .with(Rule { scope: Scope::User, priority: 9, ..Rule::new("second") })
        .with(Rule { scope: Scope::Managed, priority: 10, ..Rule::new("first") });
    let (_, plan, _) = explain(&scenario);
    let names: Vec<_> = plan.steps().iter().map(|step| step.hook.name.as_str()).collect();
    assert_eq!(names, ["first", "second", "third", "fourth", "fifth", "sixth"]);
    assert_eq!(plan.stages().count(), 6, "a serial hook is a stage of its own");
}

#[test]
fn a_block_stops_the_chain() {
    let guard = Rule::new("a").says(Says::verdict(Verdict::Block, "not here"));
    let run = take(&before_tool().with(guard).with(Rule::new("b")));
    assert_eq!(decision(&run.outcome), (Verdict::Block, Some("a"), Some("not here")));
    assert_eq!(hooks(&run.outcome), [("a", Ended::Completed)]);
}

#[test]
fn an_ask_stops_the_chain_only_where_the_dialect_says_so() {
    for (ends, ran) in [(Ends::Block, 2), (Ends::Ask, 1)] {
        let dialect = Double::with(Running::Serial, ends);
        let careful = Rule::new("a").dialect(dialect).says(Says::verdict(Verdict::Ask, "sure?"));
        let run = take(&before_tool().with(careful).with(Rule::new("b").dialect(dialect)));
        assert_eq!(decision(&run.outcome), (Verdict::Ask, Some("a"), Some("sure?")), "{ends:?}");
        assert_eq!(run.ran.len(), ran, "{ends:?}");
    }
}

#[test]
fn the_strictest_verdict_of_a_parallel_stage_wins() {
    let verdicts = [Verdict::Allow, Verdict::Ask, Verdict::Block, Verdict::Halt];
    let mut scenario = before_tool();
    for (name, verdict) in ["a", "b", "c", "d"].into_iter().zip(verdicts) {
        scenario = scenario.with(parallel(name).says(Says::verdict(verdict, name)));
        for scenario in [scenario.clone(), scenario.clone().last_ends_first()] {
            let run = take(&scenario);
            assert_eq!(decision(&run.outcome), (verdict, Some(name), Some(name)));
            assert_eq!((run.ran.len(), run.outcome.hooks.len()), (1, scenario.hooks.len()));
        }
    }
}

#[test]
fn of_equal_verdicts_the_first_in_plan_order_decides() {
    let block = |name| parallel(name).says(Says::verdict(Verdict::Block, name));
    let run = take(&before_tool().with(block("b")).with(block("a")).last_ends_first());
    assert_eq!(decision(&run.outcome), (Verdict::Block, Some("a"), Some("a")));
}

#[test]
fn the_next_stage_sees_the_patched_payload() {
    let first = Rule::new("a").says(Says::default().set(Target::ToolInput, "timeout", "9"));
    let run = take(&before_tool().with(first).with(Rule::new("b")));
    let inputs: Vec<_> = run.ran.iter().map(|(_, inputs)| inputs[&Target::ToolInput].as_str()).collect();
    assert_eq!(inputs, [r#"{"command":1}"#, r#"{"command":1,"timeout":9}"#]);
    assert_eq!(patched(&run.outcome), [r#"tool_input={"command":1,"timeout":9}"#]);
}

#[test]
fn competing_patches_fold_in_configured_order() {
    let set = |name, value| parallel(name).says(Says::default().set(Target::ToolInput, "command", value));
    let run = take(&before_tool().with(set("a", "2")).with(set("b", "3")).last_ends_first());
    assert_eq!(patched(&run.outcome), [r#"tool_input={"command":3}"#]);
}

#[test]
fn the_patch_of_a_blocking_hook_is_not_applied() {
    let says = Says::verdict(Verdict::Block, "no").set(Target::ToolInput, "command", "2").note("seen");
    let run = take(&before_tool().with(Rule::new("a").says(says)));
    assert!(patched(&run.outcome).is_empty());
    assert_eq!(run.outcome.notes.len(), 1, "its notes are kept");
}

#[test]
fn a_patch_without_its_capability_is_ignored() {
    let says = Says::default().set(Target::ToolInput, "command", "2");
    let run = take(&before_tool().with(Rule { capabilities: Vec::new(), ..Rule::new("a").says(says) }));
    assert!(patched(&run.outcome).is_empty());
    assert!(run.outcome.hooks[0].warnings[0].contains("rewrite_tool_request"));
    assert_eq!(run.counters["patches_total{hook=a,result=no_capability,target=tool_input}"], 1);
}

#[test]
fn a_patch_of_anything_but_the_target_of_the_event_is_rejected() {
    let says = Says::default().change(Change::Foreign("run_id")).set(Target::Prompt, "text", "2");
    let run = take(&before_tool().with(Rule::new("a").says(says)));
    assert!(patched(&run.outcome).is_empty());
    let warnings = &run.outcome.hooks[0].warnings;
    assert!(warnings[0].contains("run_id") && warnings[1].contains("prompt"), "{warnings:?}");
    assert_eq!(run.counters["patches_total{hook=a,result=rejected,target=other}"], 2);
}

#[test]
fn a_lifecycle_hook_only_watches() {
    let says = Says::verdict(Verdict::Halt, "stop").set(Target::ToolOutput, "text", "2").note("seen");
    let run = take(&Scenario::new(EventKind::ToolFailed).with(Rule::new("a").says(says)));
    assert_eq!(decision(&run.outcome), (Verdict::Proceed, None, None));
    assert!(patched(&run.outcome).is_empty());
    assert_eq!(run.outcome.notes.len(), 1, "its notes are kept");
    let warnings = &run.outcome.hooks[0].warnings;
    assert!(warnings[0].contains("halt") && warnings[1].contains("tool_output"), "{warnings:?}");
}

#[test]
fn a_failure_is_no_verdict() {
    let run = take(&before_tool().with(Rule::new("a").fails(Ended::Failed, "exit code 7")));
    assert_eq!(decision(&run.outcome), (Verdict::Proceed, None, None));
    assert_eq!(run.outcome.hooks[0].error.as_deref(), Some("exit code 7"));
    assert_eq!(run.counters["hook_fail_open_total{ended=failed,event=before_tool_dispatch,hook=a}"], 1);
}

#[test]
fn a_failing_guard_blocks_and_says_why() {
    let guard =
        Rule { on_error: FailurePolicy::Deny, ..Rule::new("guard").fails(Ended::Shed, "queue is full") };
    let run = take(&before_tool().with(guard).with(Rule::new("later")));
    let (verdict, by, reason) = decision(&run.outcome);
    assert_eq!((verdict, by, run.ran.len()), (Verdict::Block, Some("guard"), 1));
    let reason = reason.unwrap();
    assert!(reason.contains("guard") && reason.contains("queue is full"), "{reason}");
    assert_eq!(run.counters["hook_fail_closed_total{ended=shed,event=before_tool_dispatch,hook=guard}"], 1);
}

#[test]
fn each_failure_obeys_its_own_policy() {
    for ended in Ended::ALL.into_iter().skip(1) {
        let (on_error, on_timeout) = (FailurePolicy::Deny, FailurePolicy::Ask);
        let run =
            take(&before_tool().with(Rule { on_error, on_timeout, ..Rule::new("a").fails(ended, "gone") }));
        let expected = match ended {
            Ended::TimedOut => Verdict::Ask,
            Ended::Cancelled => Verdict::Proceed,
            _ => Verdict::Block,
        };
        assert_eq!(run.outcome.verdict, expected, "{ended}");
    }
}

#[test]
fn a_cancelled_event_ends_each_invocation_once() {
    let mut scenario = before_tool().with(parallel("a")).with(parallel("b")).with(parallel("c"));
    scenario.end = End::CancelledAfter(1);
    let run = take(&scenario);
    let ended = [("a", Ended::Completed), ("b", Ended::Cancelled), ("c", Ended::Cancelled)];
    assert_eq!(hooks(&run.outcome), ended);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 2000, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn hooks_run_in_the_documented_order_and_each_is_explained(scenario in scenarios()) {
        let (snapshot, plan, explanation) = explain(&scenario);
        let ordered = planned::ordered(&scenario);
        let names = |rules: &[&scenario::Rule]| rules.iter().map(|rule| rule.name).collect::<Vec<_>>();
        let registered: Vec<_> = snapshot.hooks().iter().map(|it| it.hook.name.as_str()).collect();
        prop_assert_eq!(registered, names(&ordered));

        let expected: Vec<_> = planned::stages(&scenario).iter().map(|stage| names(stage)).collect();
        for plan in [&plan, &explanation.plan] {
            let stages: Vec<Vec<_>> = plan
                .stages()
                .map(|stage| stage.iter().map(|step| step.hook.name.as_str()).collect())
                .collect();
            prop_assert_eq!(&stages, &expected);
            prop_assert_eq!(plan.steps().iter().map(|it| it.hook.name.as_str()).collect::<Vec<_>>(), stages.concat());
            prop_assert_eq!(plan.is_empty(), expected.is_empty());
        }

        let skipped: Vec<_> = explanation.skipped.iter().map(|it| it.hook.hook.name.as_str()).collect();
        let left_out = ordered.into_iter().filter(|rule| !planned::reasons_to_skip(&scenario, rule).is_empty());
        prop_assert_eq!(skipped, left_out.map(|rule| rule.name).collect::<Vec<_>>());
        for skipped in &explanation.skipped {
            let rule = scenario.rule(skipped.hook.hook.name.as_str());
            let reasons = planned::reasons_to_skip(&scenario, rule);
            prop_assert!(reasons.contains(&why(&skipped.why, &scenario)), "{:?}", skipped.why);
        }
    }

    #[test]
    fn an_event_takes_the_course_that_the_model_says(scenario in scenarios()) {
        let expected = model::expect(&scenario);
        let observed = drive(&scenario)?;
        prop_assert_eq!(&observed.ran, &stages_as_text(&expected));
        check_outcome(&observed.outcome, &expected)?;
        check_reports(&scenario, &observed, &expected)?;
        prop_assert_eq!(&observed.counters, &expected.counters);
    }
}

fn before_tool() -> Scenario {
    Scenario::new(EventKind::BeforeToolDispatch)
}

fn parallel(name: &'static str) -> Rule {
    Rule::new(name).dialect(Double::with(Running::Parallel, Ends::Block))
}

fn take(scenario: &Scenario) -> Observed {
    drive(scenario).unwrap()
}

fn decision(outcome: &Outcome) -> (Verdict, Option<&str>, Option<&str>) {
    (outcome.verdict, outcome.by.as_ref().map(HookName::as_str), outcome.reason.as_deref())
}

fn hooks(outcome: &Outcome) -> Vec<(&str, Ended)> {
    outcome.hooks.iter().map(|report| (report.hook.as_str(), report.ended)).collect()
}

fn patched(outcome: &Outcome) -> Vec<String> {
    outcome.patched.iter().map(|(target, value)| format!("{target}={}", value.as_str())).collect()
}
