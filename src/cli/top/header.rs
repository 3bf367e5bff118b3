//! What is said of a daemon above the tables, the most important first. Refuses to break a fact: what does not fit is left
//! out.

use std::time::Duration;

use super::{
    super::units::{coarse_duration, plural},
    columns::{count, rate, width},
    state::TopSnapshot,
};
use crate::{cli::escape, model::Verdict};

/// Between two facts.
const BETWEEN: &str = " · ";

/// How the daemon is.
pub(super) fn daemon(snapshot: &TopSnapshot) -> Vec<String> {
    let Some(status) = &snapshot.status else { return vec!["hookyard".to_owned()] };
    let broken = plural(status.broken.len(), "broken workspace");
    let mut facts = vec![
        format!("hookyard {} {}", escape::line(&status.version), escape::line(&status.phase)),
        format!("up {}", coarse_duration(Duration::from_millis(status.uptime_ms))),
        format!("{} in hand", plural(status.events_in_flight, "event")),
        format!("{} of {} active", status.active_runs, plural(status.runs, "run")),
        format!("{} in {}", plural(status.hooks, "hook"), plural(status.workspaces, "workspace")),
        format!("pid {}", status.pid),
    ];
    if !status.broken.is_empty() {
        facts.insert(1, broken);
    }
    facts
}

/// What happens to its events.
pub(super) fn events(snapshot: &TopSnapshot) -> Vec<String> {
    let events = &snapshot.events;
    let mut facts = vec![format!("{} events/s", rate(events.rate))];
    if snapshot.dropped > 0 {
        facts.push(format!("{} dropped", snapshot.dropped));
    }
    let given = Verdict::ALL.into_iter().filter(|verdict| events.verdicts.of(*verdict) > 0);
    let given: Vec<_> =
        given.map(|verdict| format!("{} {verdict}", count(events.verdicts.of(verdict)))).collect();
    if !given.is_empty() {
        facts.push(given.join(" "));
    }
    for pool in &snapshot.pools {
        let queued = pool.queued.map(|queued| format!("{queued} waiting"));
        let slots = pool.slots.iter().map(|(state, number)| format!("{number} {}", escape::line(state)));
        let parts: Vec<String> = slots.chain(queued).collect();
        facts.push(format!("{}: {}", escape::line(&pool.pool), parts.join(", ")));
    }
    facts
}

/// As many facts as fit on a line.
pub(super) fn joined(facts: &[String], room: usize) -> String {
    let mut line = String::new();
    for fact in facts {
        let between = if line.is_empty() { "" } else { BETWEEN };
        if width(&line) + width(between) + width(fact) > room {
            break;
        }
        line.push_str(between);
        line.push_str(fact);
    }
    line
}
