//! Random scenarios with few names, keys and values, so that things collide.

use std::collections::BTreeMap;

use hookyard::model::{
    Capability, DialectName, Ended, EventKind, FailurePolicy, NoteKind, Scope, Target, Verdict,
};
use proptest::{collection::vec, option, prelude::*, sample};

use crate::course::{
    double::Double,
    scenario::{Answer, Change, End, Output, Rule, Runs, Says, Scenario, Switch},
    tree::Tree,
};

const NAMES: [&str; 7] = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf"];
const FILES: [&str; 3] = ["/srv/shop/hooks/a.yaml", "/srv/shop/hooks/b.yaml", "/srv/shop/hooks/c.yaml"];
const TEXTS: [&str; 4] = ["Bash", "Read", "mcp__db__query", ""];
const PATTERNS: [&str; 6] = ["^Bash$", "^(Bash|Read)$", "ea", "^mcp__.*$", "", "sh|query"];
const FOREIGN: [&str; 6] = ["run_id", "session_id", "tool_name", "tool_call_id", "model_ref", "__proto__"];
const REASONS: [&str; 4] = ["not here", "too late", "costs money", "ask your mother"];
const KEYS: [&str; 3] = ["a", "b", "c"];

/// Any scenario.
pub(crate) fn scenarios() -> impl Strategy<Value = Scenario> {
    (kinds(), dialects()).prop_flat_map(|(kind, dialects)| {
        let hooks = (sample::subsequence(&NAMES[..], 0..=7).prop_shuffle()).prop_flat_map(move |names| {
            names.into_iter().map(|name| rules(name, kind, dialects)).collect::<Vec<_>>()
        });
        let text = option::weighted(0.8, sample::select(&TEXTS[..]));
        let pace = Just((0..8).collect::<Vec<u8>>()).prop_shuffle();
        (Just(kind), text, payloads(kind), hooks, pace, ends()).prop_map(
            |(kind, text, payload, hooks, pace, end)| Scenario { kind, text, payload, hooks, pace, end },
        )
    })
}

fn kinds() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        3 => Just(EventKind::BeforeToolDispatch),
        2 => Just(EventKind::AfterToolDispatch),
        5 => sample::select(EventKind::ALL),
    ]
}

fn dialects() -> impl Strategy<Value = [&'static Double; 2]> {
    let of = |name| sample::select(Double::all(name).collect::<Vec<_>>());
    [of(DialectName::Canonical), of(DialectName::OpenHarness)]
}

fn ends() -> impl Strategy<Value = End> {
    prop_oneof![4 => Just(End::ByItself), 1 => (0..6_usize).prop_map(End::CancelledAfter)]
}

fn payloads(kind: EventKind) -> impl Strategy<Value = BTreeMap<Target, Tree>> {
    let own = kind.target().unwrap_or(Target::Prompt);
    (option::weighted(0.8, trees()), option::weighted(0.2, (targets(), trees())))
        .prop_map(move |(mine, other)| other.into_iter().chain(mine.map(|value| (own, value))).collect())
}

fn targets() -> impl Strategy<Value = Target> {
    sample::select(&Target::ALL[..])
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = sample::select(&["1", "2", "null", "true", "\"é\\n\"", "1.0"][..]).prop_map(Tree::Leaf);
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..3).prop_map(Tree::List),
            5 => objects(inner),
        ]
    })
}

fn objects(inner: impl Strategy<Value = Tree> + 'static) -> impl Strategy<Value = Tree> {
    let keys = sample::subsequence(&KEYS[..], 0..=3).prop_shuffle();
    (keys, [inner.boxed(), trees_of_leaves(), trees_of_leaves()])
        .prop_map(|(keys, values)| Tree::Object(keys.into_iter().zip(values).collect()))
}

fn trees_of_leaves() -> BoxedStrategy<Tree> {
    sample::select(&["1", "2", "3"][..]).prop_map(Tree::Leaf).boxed()
}

fn rules(name: &'static str, kind: EventKind, dialects: [&'static Double; 2]) -> impl Strategy<Value = Rule> {
    let wanted = (
        sample::select(dialects.to_vec()),
        prop_oneof![9 => Just(true), 1 => Just(false)],
        sample::subsequence(EventKind::ALL, 0..3),
        option::weighted(0.3, sample::select(&PATTERNS[..])),
        prop_oneof![9 => Just(Switch::On), 1 => Just(Switch::Off)],
    );
    let found = (
        -1..=1_i32,
        sample::select(vec![Scope::Project, Scope::User, Scope::Managed, Scope::Host]),
        option::weighted(0.7, sample::select(&FILES[..])),
        0..2_usize,
    );
    let policies = sample::select(&FailurePolicy::ALL[..]);
    let handler = sample::select(vec![Runs::Native, Runs::Http, Runs::Prompt, Runs::Agent]);
    (wanted, found, [policies.clone(), policies], handler, capabilities(kind), answers(kind)).prop_map(
        move |(wanted, found, [on_error, on_timeout], handler, capabilities, answer)| {
            let (dialect, wants_kind, mut events, matcher, switch) = wanted;
            events.retain(|other| *other != kind);
            events.extend(wants_kind.then_some(kind));
            let (priority, scope, file, position) = found;
            Rule {
                name,
                dialect,
                events,
                matcher,
                handler,
                capabilities,
                priority,
                switch,
                on_error,
                on_timeout,
                scope,
                file,
                position,
                answer,
            }
        },
    )
}

fn capabilities(kind: EventKind) -> impl Strategy<Value = Vec<Capability>> {
    let own = kind.target().map(Target::capability);
    let any = sample::subsequence(&Capability::ALL[..], 0..=3);
    (any, prop_oneof![3 => Just(own), 1 => Just(None)]).prop_map(|(mut set, own)| {
        set.extend(own);
        set
    })
}

fn answers(kind: EventKind) -> impl Strategy<Value = Answer> {
    let failures = sample::select(&Ended::ALL[1..]);
    let messages = sample::select(&["exit code 7", "nobody at home"][..]);
    prop_oneof![
        4 => says(kind).prop_map(Answer::Replies),
        1 => (failures, messages).prop_map(|(ended, message)| Answer::Fails(ended, message)),
    ]
}

fn says(kind: EventKind) -> impl Strategy<Value = Says> {
    let verdict = prop_oneof![
        6 => Just(Verdict::Proceed),
        2 => Just(Verdict::Allow),
        2 => Just(Verdict::Ask),
        1 => Just(Verdict::Block),
        1 => Just(Verdict::Halt),
    ];
    let note = (
        sample::select(vec![NoteKind::SystemMessage, NoteKind::AdditionalContext]),
        sample::select(&["mind the gap", "seen", ""][..]),
    );
    (
        verdict,
        option::weighted(0.7, sample::select(&REASONS[..])),
        vec(changes(kind), 0..3),
        vec(note, 0..3),
        prop_oneof![3 => Just(Output::Shown), 1 => Just(Output::Suppressed)],
        vec(sample::select(&["odd exit code", "deprecated word"][..]), 0..2),
    )
        .prop_map(|(verdict, reason, changes, notes, output, warnings)| Says {
            verdict,
            reason,
            changes,
            notes,
            output,
            warnings,
        })
}

fn changes(kind: EventKind) -> impl Strategy<Value = Change> {
    let own = kind.target().unwrap_or(Target::ToolInput);
    prop_oneof![
        6 => trees().prop_map(move |value| Change::Of(own, value)),
        1 => (targets(), trees()).prop_map(|(target, value)| Change::Of(target, value)),
        1 => sample::select(&FOREIGN[..]).prop_map(Change::Foreign),
    ]
}
