//! Claims, whatever comes in which order.

use std::collections::HashSet;

use proptest::prelude::*;
use tokio::time::Instant;

use super::{
    message::{ClaimMessage, LastClaim},
    table::{ClaimTable, Taken},
};
use crate::{
    model::{RunId, RunKey, WorkspaceId},
    store::{Moved, StoredHalt, StoredRun},
};

fn key(run: &str) -> RunKey {
    RunKey { workspace: WorkspaceId::new("shop").unwrap(), run: RunId::new(run).unwrap() }
}

fn stops(stops_blocked: u8) -> StoredRun {
    StoredRun { stops_blocked, ..StoredRun::default() }
}

/// A claim that the bucket has.
fn written(table: &mut ClaimTable, run: &RunKey, epoch: u64, number: u64, state: StoredRun) {
    let claim = ClaimMessage { key: run.clone(), epoch, instance: "i".to_owned(), state };
    let (settled, taken) = table.taken(&claim, number, Instant::now());
    settled.tell();
    assert_eq!(taken, Taken::Here);
}

/// A claim whose state is known here.
fn take(table: &mut ClaimTable, run: &RunKey, epoch: u64, number: u64, state: StoredRun) {
    written(table, run, epoch, number, state);
    table.adopted(run, epoch);
}

#[test]
fn a_change_is_answered_once_the_bucket_has_it() {
    let (mut table, run) = (ClaimTable::default(), key("r"));
    take(&mut table, &run, 1, 10, StoredRun::default());
    assert!(table.commitment(&run, 1).unwrap().is_none(), "nothing has changed");
    assert!(!table.note(&run, StoredRun::default()) && table.note(&run, stops(1)));
    let mut first = table.commitment(&run, 1).unwrap().unwrap();
    let change = table.uncommitted(&HashSet::new(), 9).pop().unwrap();
    assert_eq!((change.after, change.epoch, change.state.as_ref()), (10, 1, Some(&stops(1))));
    assert!(table.note(&run, stops(2)));
    let mut second = table.commitment(&run, 1).unwrap().unwrap();
    table.committed(&change, 11, Instant::now()).tell();
    assert_eq!((first.try_recv(), second.try_recv().is_err()), (Ok(Ok(())), true));
    let change = table.uncommitted(&HashSet::new(), 9).pop().unwrap();
    assert_eq!((change.after, change.state.as_ref()), (11, Some(&stops(2))));
    assert!(table.uncommitted(&HashSet::from([run.clone()]), 9).is_empty(), "one at a time");
    table.committed(&change, 12, Instant::now()).tell();
    assert_eq!((second.try_recv(), table.uncommitted(&HashSet::new(), 9).len()), (Ok(Ok(())), 0));
}

#[test]
fn a_change_is_refused_once_another_daemon_has_claimed_the_run() {
    let (mut table, run) = (ClaimTable::default(), key("r"));
    take(&mut table, &run, 1, 10, StoredRun::default());
    table.note(&run, stops(1));
    let mut waits = table.commitment(&run, 1).unwrap().unwrap();
    let change = table.uncommitted(&HashSet::new(), 9).pop().unwrap();
    assert!(!table.is_news(&run, 7) && table.is_news(&run, 1) && !table.is_news(&run, 1));
    assert!(table.commitment(&run, 1).is_err(), "it is about to be told");
    table.lost(&run, 7).tell();
    assert!(table.held(&run).is_some(), "another claim");
    table.lost(&run, 1).tell();
    assert!(table.held(&run).is_none());
    assert!(waits.try_recv().is_err(), "it is being written, and the other daemon may have read it");
    table.failed(&change).tell();
    assert_eq!(waits.try_recv(), Ok(Err(Moved)), "who waits");
    assert!(table.uncommitted(&HashSet::new(), 9).is_empty(), "what comes late is nothing");
    assert!(
        !table.note(&run, stops(2)) && table.commitment(&run, 1).is_err(),
        "who changes it without a claim"
    );
    take(&mut table, &run, 3, 20, stops(5));
    assert!(table.commitment(&run, 1).is_err(), "who began under the former claim");
    assert!(table.commitment(&run, 3).unwrap().is_none(), "a new claim");
}

#[test]
fn a_change_that_the_other_daemon_has_read_is_confirmed() {
    let (mut table, run) = (ClaimTable::default(), key("r"));
    take(&mut table, &run, 1, 10, StoredRun::default());
    table.note(&run, stops(1));
    let mut first = table.commitment(&run, 1).unwrap().unwrap();
    let change = table.uncommitted(&HashSet::new(), 9).pop().unwrap();
    table.note(&run, stops(2));
    let mut second = table.commitment(&run, 1).unwrap().unwrap();
    table.lost(&run, 1).tell();
    assert_eq!(second.try_recv(), Ok(Err(Moved)), "nobody has read that");
    table.committed(&change, 11, Instant::now()).tell();
    assert_eq!(first.try_recv(), Ok(Ok(())));
}

#[test]
fn what_other_daemons_have_left_is_not_taken_away_before_it_is_known() {
    let (mut table, run) = (ClaimTable::default(), key("r"));
    written(&mut table, &run, 2, 10, stops(4));
    assert!(table.held(&run).is_none(), "events of the run wait");
    assert!(!table.note(&run, stops(1)), "an event of before that ends late");
    assert!(!table.note(&run, stops(4)), "it is adopted");
    table.adopted(&run, 1);
    assert!(table.held(&run).is_none(), "an older claim");
    table.adopted(&run, 2);
    assert!(
        table.held(&run) == Some(2) && table.note(&run, StoredRun::default()),
        "the agent has worked since"
    );
}

#[test]
fn the_end_of_a_run_takes_its_state_with_it() {
    let (mut table, run) = (ClaimTable::default(), key("r"));
    assert!(!table.end(&run), "there is nothing to end");
    take(&mut table, &run, 1, 10, stops(1));
    assert!(table.end(&run) && table.is_ending(&run) && table.held(&run).is_none());
    let mut waits = table.commitment(&run, 1).unwrap().unwrap();
    let change = table.uncommitted(&HashSet::new(), 9).pop().unwrap();
    assert_eq!((change.state.as_ref(), change.after), (None, 10));
    table.committed(&change, 11, Instant::now()).tell();
    assert_eq!((waits.try_recv(), table.is_ending(&run)), (Ok(Ok(())), false));
    take(&mut table, &run, 1, 12, stops(1));
    table.forget(&run).tell();
    assert!(table.held(&run).is_none(), "only forgotten here: others may go on with it");
    assert!(table.uncommitted(&HashSet::new(), 9).is_empty());
}

#[test]
fn an_end_is_not_told_of_a_run_that_another_daemon_goes_on_with() {
    let (mut table, run) = (ClaimTable::default(), key("r"));
    take(&mut table, &run, 1, 10, StoredRun::default());
    assert!(table.note(&run, stops(1)) && table.end(&run));
    let mut waits = table.commitment(&run, 1).unwrap().unwrap();
    assert_eq!(table.hear_of_another(&run, 11), Some(1));
    table.lost(&run, 1).tell();
    assert_eq!(waits.try_recv(), Ok(Err(Moved)));
}

#[test]
fn a_claim_that_was_taken_over_before_it_was_confirmed_is_none() {
    let (mut table, run) = (ClaimTable::default(), key("r"));
    let claim = ClaimMessage { key: run.clone(), epoch: 1, instance: "i".to_owned(), state: stops(1) };
    for (heard, expected) in [(9, Taken::Here), (11, Taken::Over)] {
        table.begins(&run);
        assert!(table.concerns(&run, heard) && table.hear_of_another(&run, heard).is_none());
        let (settled, taken) = table.taken(&claim, 10, Instant::now());
        settled.tell();
        table.ends(&run);
        assert_eq!((taken, table.concerns(&run, 11)), (expected, expected == Taken::Here), "{heard}");
        table.forget(&run).tell();
    }
}

#[test]
fn claims_are_counted_on_behind_an_end() {
    let run = key("r");
    let claim = ClaimMessage { key: run.clone(), epoch: 7, instance: "i".to_owned(), state: stops(1) };
    let last = LastClaim { number: 10, is_over: false, claim: Ok(claim) };
    let end = ClaimMessage::end(&run, &last, "other");
    let found = LastClaim { number: 11, is_over: true, claim: Ok(end) }.found(&run).unwrap();
    assert_eq!((found.number, found.epoch, &found.state), (11, 7, &StoredRun::default()));
}

#[test]
fn a_message_has_the_state_without_the_halt() {
    let halt = Some(StoredHalt { reason: Some("why".into()), by: None });
    let message = ClaimMessage {
        key: key("r"),
        epoch: 7,
        instance: "i".to_owned(),
        state: StoredRun { halt, ..stops(3) },
    };
    let bytes = message.encode("n1").unwrap();
    assert_eq!(ClaimMessage::decode(&bytes), Ok(ClaimMessage { state: stops(3), ..message }));
    assert_eq!(ClaimMessage::key_of(&bytes), Some(key("r")));
    let text = String::from_utf8(bytes).unwrap();
    for (from, to) in
        [("{\"v\":1,\"w", "{\"v\":2,\"w"), ("\"state\":{\"v\":1", "\"state\":{\"v\":9"), ("epoch", "epoc")]
    {
        assert!(text.contains(from), "{from}: {text}");
        assert!(ClaimMessage::decode(text.replace(from, to).as_bytes()).is_err(), "{to}");
    }
}

proptest! {
    /// Whatever comes in which order: no change is confirmed that the bucket does not have in place of the claim's own message.
    #[test]
    fn only_what_the_bucket_has_is_confirmed(steps in prop::collection::vec((0..6u8, 0..3u8), 1..60)) {
        let (mut table, run) = (ClaimTable::default(), key("r"));
        // The bucket: the number of the last message, and whose it is. Another daemon claims as well.
        let (mut number, mut epoch, mut claimed, mut is_own) = (0, 0, 0, false);
        // How many changes there were, and how many of them the bucket has.
        let (mut changes, mut stored) = (0, 0);
        let mut under_way = None;
        let mut waits = Vec::new();
        for (step, value) in steps {
            match step {
                0 if table.held(&run).is_none() => {
                    (number, epoch, is_own) = (number + 1, epoch + 1, true);
                    claimed = epoch;
                    take(&mut table, &run, epoch, number, StoredRun::default());
                }
                1 => {
                    // What is the same as before is no change.
                    changes += u64::from(table.note(&run, stops(value)));
                    let waits_for = table.commitment(&run, claimed).ok().flatten();
                    waits.extend(waits_for.map(|waiter| (changes, waiter)));
                }
                2 if under_way.is_none() => {
                    under_way = table.uncommitted(&HashSet::new(), 1).pop().map(|change| (changes, change));
                }
                3 => {
                    let Some((up_to, change)) = under_way.take() else { continue };
                    if is_own && change.after == number {
                        (number, stored) = (number + 1, up_to);
                        table.committed(&change, number, Instant::now()).tell();
                    } else if change.epoch == epoch || !is_own {
                        table.lost(&run, change.epoch).tell();
                    }
                }
                4 => (number, epoch, is_own) = (number + 1, epoch + 1, false),
                5 if !is_own => table.lost(&run, claimed).tell(),
                _ => {}
            }
            for (change, mut waiter) in std::mem::take(&mut waits) {
                match waiter.try_recv() {
                    Ok(Ok(())) => prop_assert!(change <= stored, "{change} beside {stored}"),
                    Ok(Err(Moved)) => prop_assert!(change > stored, "{change} beside {stored}"),
                    Err(_) => waits.push((change, waiter)),
                }
            }
        }
    }
}
