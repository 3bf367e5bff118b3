//! What is known of halts, whatever comes in which order.

use std::{collections::HashSet, time::Duration};

use async_nats::HeaderMap;
use proptest::prelude::*;

use super::{
    messages::{HaltMessage, LONGEST, UnreadableMessage, token_of},
    publication::KeyOperation,
    table::{Aging, HaltTable, Heard, UnstoredChange},
};
use crate::{
    model::{HookName, RunId, RunKey, WorkspaceId},
    store::StoredHalt,
};

fn key(run: &str) -> RunKey {
    RunKey { workspace: WorkspaceId::new("shop").unwrap(), run: RunId::new(run).unwrap() }
}

fn halt(reason: &str) -> StoredHalt {
    StoredHalt { reason: Some(reason.into()), by: HookName::new("guard").ok() }
}

fn message(run: &str, halt: Option<StoredHalt>) -> HaltMessage {
    HaltMessage { key: key(run), halt, instance: String::new() }
}

fn all_unstored(table: &HaltTable) -> Vec<UnstoredChange> {
    table.unstored(&HashSet::new(), usize::MAX)
}

#[test]
fn a_halt_is_told_once_and_its_end_too() {
    let mut table = HaltTable::default();
    assert!(!table.note(&key("a"), None), "nothing is known of it");
    assert!(table.note(&key("a"), Some(&halt("spent"))));
    assert!(!table.note(&key("a"), Some(&halt("spent again"))), "the first halt stays");
    let changes = all_unstored(&table);
    assert_eq!(changes.len(), 1);
    table.stored(&changes[0], Some(7));
    assert_eq!(table.counts(), (1, 0));
    assert!(table.note(&key("a"), None));
    let changes = all_unstored(&table);
    assert_eq!(changes[0].halt, None);
    table.stored(&changes[0], Some(8));
    assert_eq!(table.counts(), (0, 0));
}

#[test]
fn what_this_daemon_has_to_say_is_not_undone_by_what_was_said_before() {
    let mut table = HaltTable::default();
    table.note(&key("a"), Some(&halt("here")));
    assert_eq!(table.hear(message("a", None), 3, 0, false), Heard::Nothing, "its own halt comes after that");
    let changes = all_unstored(&table);
    table.stored(&changes[0], Some(5));
    assert_eq!(table.hear(message("a", None), 4, 0, false), Heard::Nothing, "its own halt came after that");
    assert_eq!(table.hear(message("a", None), 6, 0, false), Heard::Changed);
    assert_eq!(table.halt_of(&key("a")), None);
}

#[test]
fn whoever_waits_waits_for_what_was_unstored_then() {
    let mut table = HaltTable::default();
    assert_eq!(table.flushed(None).try_recv(), Ok(()), "nothing is");
    table.note(&key("a"), Some(&halt("a")));
    let mut waiter = table.flushed(None);
    table.note(&key("b"), Some(&halt("b")));
    let mut waiter_of_b = table.flushed(Some(&key("b")));
    let changes = all_unstored(&table);
    assert_eq!(changes[0].key, key("b"), "the latest first");
    assert!(waiter.try_recv().is_err());
    table.stored(&changes[1], Some(1));
    assert_eq!(waiter.try_recv(), Ok(()), "`b` came later");
    assert!(waiter_of_b.try_recv().is_err());
    table.note(&key("c"), Some(&halt("c")));
    table.stored(&changes[0], Some(2));
    assert_eq!(waiter_of_b.try_recv(), Ok(()), "whatever becomes of `c`");
}

#[test]
fn a_change_that_is_overtaken_keeps_nobody_waiting() {
    let mut table = HaltTable::default();
    table.note(&key("a"), Some(&halt("a")));
    let first = all_unstored(&table);
    let mut waiter = table.flushed(None);
    table.note(&key("a"), None);
    assert_eq!(table.counts().1, 1);
    table.stored(&first[0], Some(1));
    assert_eq!(waiter.try_recv(), Ok(()));
    assert_eq!(table.counts().1, 1, "the end is still to be told");
}

#[test]
fn a_bucket_that_has_lost_halts_gets_them_again() {
    let mut table = HaltTable::default();
    table.hear(message("a", Some(halt("elsewhere"))), 900, 0, false);
    table.renew_all();
    let changes = all_unstored(&table);
    assert_eq!((changes.len(), changes[0].halt.is_some()), (1, true));
    table.stored(&changes[0], Some(3));
    assert_eq!(table.hear(message("a", None), 4, 0, false), Heard::Changed, "the numbers begin anew");
}

#[test]
fn a_message_that_is_read_before_it_is_confirmed_counts_all_the_same() {
    let mut table = HaltTable::default();
    table.note(&key("a"), Some(&halt("own")));
    let changes = all_unstored(&table);
    assert_eq!(table.hear(message("a", Some(halt("own"))), 4, 90, false), Heard::Nothing);
    assert!(table.stored(&changes[0], Some(4)), "the run is shared from now on");
    assert!(table.aging(100, Duration::from_secs(100)).is_empty(), "it was written just now");
    assert_eq!(table.counts(), (1, 0));
}

#[test]
fn what_another_daemon_says_after_a_change_counts_once_that_is_confirmed() {
    let mut table = HaltTable::default();
    table.hear(message("a", Some(halt("first"))), 3, 0, false);
    table.note(&key("a"), None);
    let changes = all_unstored(&table);
    assert_eq!(changes[0].after, Some(3), "it ends that halt and no other");
    assert_eq!(
        table.hear(message("a", Some(halt("newer"))), 5, 0, false),
        Heard::Changed,
        "the end comes too late"
    );
    assert!(!table.stored(&changes[0], None), "the bucket has something newer");
    assert_eq!(table.halt_of(&key("a")), Some(halt("newer")));
    assert_eq!(table.counts(), (1, 0));
}

#[test]
fn what_is_not_readable_at_the_key_of_a_halt_has_that_written_again() {
    let mut table = HaltTable::default();
    table.hear(message("a", Some(halt("first"))), 3, 0, false);
    table.renew_at(&token_of(&key("b")));
    assert_eq!(table.counts().1, 0);
    table.renew_at(&token_of(&key("a")));
    assert_eq!(all_unstored(&table)[0].halt, Some(halt("first")));
}

#[test]
fn a_halt_may_be_answered_once_the_others_know_that_very_one() {
    let (mut table, run) = (HaltTable::default(), key("a"));
    assert!(table.may_be_answered(&run), "it is not halted");
    table.hear(message("a", Some(halt("elsewhere"))), 3, 0, false);
    assert_eq!((table.may_be_answered(&run), table.unasked(&run)), (false, Some(3)));
    table.hear(message("a", Some(halt("again"))), 5, 0, false);
    table.known_by_all(&run, 3);
    assert!(!table.may_be_answered(&run), "between the two, the run may have gone on");
    table.known_by_all(&run, 5);
    assert_eq!((table.may_be_answered(&run), table.unasked(&run)), (true, None));
    table.hear(message("a", Some(halt("again"))), 5, 0, false);
    assert!(table.may_be_answered(&run), "the same message");
    table.note(&run, None);
    table.stored(&all_unstored(&table)[0], Some(6));
    table.note(&run, Some(&halt("own")));
    assert!(!table.may_be_answered(&run), "the bucket does not have it");
    assert_eq!(table.hear(message("a", Some(halt("own"))), 7, 0, true), Heard::Nothing);
    table.stored(&all_unstored(&table)[0], Some(7));
    assert!(table.may_be_answered(&run), "the others were asked before");
}

#[cfg(feature = "cli")]
#[test]
fn two_daemons_of_one_name_are_told_from_one_that_follows_another() {
    for (heard, are_two) in
        [("", false), ("aaa", false), ("aab", false), ("abb", false), ("aba", true), ("abab", true)]
    {
        let heard: Vec<String> = heard.chars().map(String::from).collect();
        assert_eq!(super::survey::alternate(&heard), are_two, "{heard:?}");
    }
}

#[test]
fn what_a_server_refuses_is_said_with_its_cause() {
    #[derive(Debug, thiserror::Error)]
    #[error("publish failed")]
    struct Failed(#[source] std::io::Error);

    let words = super::unreachable(&Failed(std::io::Error::other("maximum bytes exceeded"))).to_string();
    assert!(words.ends_with("publish failed: maximum bytes exceeded"), "{words}");
    let words = super::unreachable(&std::io::Error::other("timed out")).to_string();
    assert!(words.ends_with(": timed out"), "{words}");
}

#[test]
fn halts_age_by_the_clock_of_the_servers() {
    let mut table = HaltTable::default();
    table.note(&key("not read"), Some(&halt("own")));
    for change in all_unstored(&table) {
        table.stored(&change, Some(1));
    }
    for (run, written) in [("new", 90), ("old", 40), ("gone", -20)] {
        table.hear(message(run, Some(halt(run))), 1, written, false);
    }
    let mut aging = table.aging(100, Duration::from_secs(100));
    aging.sort_by_key(|aging| matches!(aging, Aging::Gone(_)));
    assert_eq!(aging, [Aging::Old(key("old")), Aging::Gone(key("gone"))]);
    assert_eq!(table.counts().0, 3);
    assert!(table.aging(i64::MIN, Duration::MAX).is_empty(), "a clock that was set back");
}

#[test]
fn halts_are_no_older_when_the_clock_of_the_servers_was_ahead() {
    const DAY: i64 = 86_400;
    const KEPT: Duration = Duration::from_secs(100);
    let mut table = HaltTable::default();
    table.hear(message("before", Some(halt("x"))), 1, 40, false);
    table.hear(message("after", Some(halt("x"))), 2, DAY + 60, false);
    table.set_forward(DAY);
    let changes = all_unstored(&table);
    assert_eq!(changes.len(), 2, "they are written again");
    for change in &changes {
        table.stored(change, None);
    }
    assert!(table.aging(DAY + 60, KEPT).is_empty(), "20 s have passed, and none");
    assert_eq!(table.aging(DAY + 95, KEPT), [Aging::Old(key("before"))]);
    assert!(table.aging(100, KEPT).is_empty(), "another server leads, whose clock is right");
    assert_eq!(table.aging(160, KEPT).len(), 2, "a minute later they are written again");
}

#[test]
fn a_message_says_which_run_it_is_about_or_is_passed_over() {
    let written = HaltMessage::encode(&key("a"), Some(&halt("spent")), ("n1", ""));
    assert_eq!(HaltMessage::decode(&written, false).unwrap(), message("a", Some(halt("spent"))));
    assert_eq!(HaltMessage::decode(&written, true).unwrap(), message("a", None));
    for end in 0..written.len() {
        assert_eq!(HaltMessage::decode(&written[..end], false), Err(UnreadableMessage::Damaged), "{end}");
    }
    for (text, halted) in [
        (r#"{"v":2,"workspace":"shop","run":"a","colour":"red","reason":"later"}"#, true),
        (r#"{"v":1,"workspace":"shop","run":"a","by":"no such name \u0000"}"#, true),
        (r#"{"v":3,"workspace":"shop","run":"a","reason":{"text":"later"},"by":[1]}"#, true),
        (r#"{"v":1,"workspace":"","run":"a"}"#, false),
        (r#"{"v":1,"workspace":"shop"}"#, false),
        (r#"{"v":1,"workspace":"shop","run":7}"#, false),
        ("[]", false),
    ] {
        assert_eq!(HaltMessage::decode(text.as_bytes(), false).is_ok(), halted, "{text}");
    }
    let long = " ".repeat(LONGEST + 1);
    assert_eq!(HaltMessage::decode(long.as_bytes(), false), Err(UnreadableMessage::TooLong));
}

#[test]
fn only_a_deletion_ends_a_halt_or_a_claim() {
    assert_eq!(KeyOperation::of(None), KeyOperation::Put);
    for (texts, expected) in [
        (&[][..], KeyOperation::Put),
        (&["PUT"], KeyOperation::Put),
        (&["DEL"], KeyOperation::End),
        (&["PURGE"], KeyOperation::End),
        (&[""], KeyOperation::Unknown),
        (&["del"], KeyOperation::Unknown),
        (&["DELETE"], KeyOperation::Unknown),
        (&["FOO"], KeyOperation::Unknown),
        (&["FOO", "DEL"], KeyOperation::Unknown),
    ] {
        let mut headers = HeaderMap::new();
        for text in texts {
            headers.append("KV-Operation", *text);
        }
        assert_eq!(KeyOperation::of(Some(&headers)), expected, "{texts:?}");
    }
}

#[test]
fn a_long_reason_is_shortened_and_a_halt_all_the_same() {
    let reason = "ö".repeat(LONGEST);
    let written = HaltMessage::encode(&key("a"), Some(&halt(&reason)), ("n1", ""));
    assert!(written.len() < LONGEST);
    let shortened = HaltMessage::decode(&written, false).unwrap().halt.unwrap().reason.unwrap();
    assert!(reason.starts_with(shortened.trim_end_matches('…')) && shortened.ends_with('…'));
}

/// What happens to one run, on two daemons that share a bucket.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A daemon halts it, or its halt is over there.
    Note(usize, bool),
    /// The bucket takes a change of a daemon.
    Store(usize),
    /// It does, and the daemon does not hear of that.
    StoreUnconfirmed(usize),
    /// A daemon reads on.
    Read(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..2_usize, any::<bool>()).prop_map(|(daemon, halts)| Step::Note(daemon, halts)),
        (0..2_usize).prop_map(Step::Store),
        (0..2_usize).prop_map(Step::StoreUnconfirmed),
        (0..2_usize).prop_map(Step::Read),
    ];
    prop::collection::vec(step, 0..40)
}

/// A bucket of one run, and two daemons, each with how far it has read.
#[derive(Default)]
struct Shared {
    bucket: Vec<HaltMessage>,
    daemons: [(HaltTable, usize); 2],
}

impl Shared {
    fn store(&mut self, daemon: usize, is_confirmed: bool) {
        let (table, _) = &mut self.daemons[daemon];
        for change in all_unstored(table) {
            let is_late = change.after.is_some_and(|after| after != self.bucket.len() as u64);
            if !is_late {
                let instance = daemon.to_string();
                self.bucket.push(HaltMessage { instance, ..message("a", change.halt.clone()) });
            }
            if is_confirmed {
                table.stored(&change, (!is_late).then_some(self.bucket.len() as u64));
            }
        }
    }

    fn read(&mut self, daemon: usize) {
        let (table, read) = &mut self.daemons[daemon];
        if let Some(next) = self.bucket.get(*read) {
            *read += 1;
            table.hear(next.clone(), *read as u64, 0, next.instance == daemon.to_string());
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Note(daemon, halts) => {
                self.daemons[daemon].0.note(&key("a"), halts.then(|| halt("x")).as_ref());
            }
            Step::Store(daemon) => self.store(daemon, true),
            Step::StoreUnconfirmed(daemon) => self.store(daemon, false),
            Step::Read(daemon) => self.read(daemon),
        }
    }

    /// Until nobody has anything to write or to read.
    fn settle(&mut self) {
        for _ in 0..1000 {
            for daemon in 0..2 {
                self.store(daemon, true);
                self.read(daemon);
            }
        }
    }
}

proptest! {
    /// Once the bucket has everything and everybody has read it, all agree with what it has last.
    #[test]
    fn daemons_agree_in_the_end(steps in steps()) {
        let mut shared = Shared::default();
        for step in steps {
            shared.take(step);
        }
        shared.settle();
        let last = shared.bucket.last().is_some_and(|last| last.halt.is_some());
        for (table, read) in &shared.daemons {
            prop_assert_eq!(*read, shared.bucket.len());
            prop_assert_eq!(table.halt_of(&key("a")).is_some(), last);
            prop_assert_eq!(table.counts().1, 0);
        }
    }

    /// The end of a halt that a daemon knew does not end one that another daemon gives later, however often it is written.
    #[test]
    fn an_end_ends_no_newer_halt(steps in steps()) {
        let mut shared = Shared::default();
        let of_first = |step: &Step| matches!(step, Step::StoreUnconfirmed(0) | Step::Store(0) | Step::Read(0));
        shared.take(Step::Note(0, true));
        shared.settle();
        shared.take(Step::Note(0, false));
        // The other daemon has ended it as well, and halts the run again.
        shared.take(Step::Note(1, false));
        shared.store(1, true);
        shared.take(Step::Note(1, true));
        shared.store(1, true);
        for step in steps.into_iter().filter(of_first) {
            shared.take(step);
        }
        shared.settle();
        for (table, _) in &shared.daemons {
            prop_assert!(table.halt_of(&key("a")).is_some());
        }
    }

    #[test]
    fn different_runs_have_different_keys(one in "[a-z]{1,4}", other in "[a-z]{1,4}", workspace in "[a-z]{1,4}") {
        let other_key = RunKey { workspace: WorkspaceId::new(workspace.clone()).unwrap(), run: RunId::new(other.clone()).unwrap() };
        let is_same = workspace == "shop" && one == other;
        prop_assert_eq!(token_of(&key(&one)) == token_of(&other_key), is_same);
        prop_assert!(token_of(&other_key).bytes().all(|byte| byte.is_ascii_alphanumeric()));
    }
}
