//! Models of what the daemons of a cluster promise with `cluster.halts: strict`, in every order in which messages, pauses,
//! crashes, lost answers and time may come: with all safeguards, and with one left out at a time, which must show.

mod claims;
mod halts;

use std::fmt::Debug;

use stateright::{Checker, Model};

/// The most states of a model, far more than it has: one that grows beyond is to be made smaller.
const MOST_STATES: usize = 2_000_000;

/// As many steps as there are.
const ANY_DEPTH: usize = usize::MAX;

/// Tries every order of so many steps. Returns how the property with this name fails, if it does.
fn counterexample<M>(model: M, property: &'static str, depth: usize) -> Option<String>
where
    M: Model + Send + Sync + 'static,
    M::State: Debug + Clone + PartialEq + std::hash::Hash + Send + Sync + 'static,
    M::Action: Debug + Clone + PartialEq + Send + Sync,
{
    let checker =
        model.checker().threads(2).target_max_depth(depth).target_state_count(MOST_STATES).spawn_bfs().join();
    let found = checker.discovery(property);
    let actions = found.map(|path| {
        let actions: Vec<String> = path.into_actions().iter().map(|action| format!("{action:?}")).collect();
        actions.join(", ")
    });
    if actions.is_none() {
        assert!(checker.state_count() < MOST_STATES, "not all states were tried");
        checker.assert_properties();
        println!("{} states, {} at most in a row", checker.unique_state_count(), checker.max_depth());
    }
    actions
}
