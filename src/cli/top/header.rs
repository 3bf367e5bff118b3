//! The lines above the tables: facts about the daemon and its events, the most important first. A fact that does not fit
//! is left out, never cut.

use std::time::Duration;

use super::{
    columns::{count, rate, width},
    pools::{LIMIT, PoolUsage},
    state::TopSnapshot,
};
use crate::{
    cli::{
        escape,
        units::{coarse_duration, plural},
    },
    model::Verdict,
};

/// Between two facts.
const SEPARATOR: &str = " · ";

/// Facts about the daemon.
pub(super) fn daemon(snapshot: &TopSnapshot) -> Vec<String> {
    let Some(status) = &snapshot.status else { return vec!["hookyard".to_owned()] };
    let mut facts =
        vec![format!("hookyard {} {}", escape::line(&status.version), escape::line(&status.phase))];
    if !status.not_loaded.is_empty() {
        facts.push(format!("{} not loaded", plural(status.not_loaded.len(), "workspace")));
    }
    if !status.broken.is_empty() {
        facts.push(plural(status.broken.len(), "broken workspace"));
    }
    if !status.degraded_workers.is_empty() {
        facts.push(format!("workers of {} degraded", plural(status.degraded_workers.len(), "hook")));
    }
    facts.extend([
        format!("up {}", coarse_duration(Duration::from_millis(status.uptime_ms))),
        format!("{} in flight", plural(status.events_in_flight, "event")),
        format!("{} of {} active", status.active_runs, plural(status.runs, "run")),
        format!("{} in {}", plural(status.hooks, "hook"), plural(status.workspaces, "workspace")),
        format!("pid {}", status.pid),
    ]);
    facts
}

/// Facts about its events. Pools in use come before the counts of verdicts, which the table has too; idle pools come
/// last.
pub(super) fn events(snapshot: &TopSnapshot) -> Vec<String> {
    let events = &snapshot.events;
    let mut facts = vec![format!("{} events/s", rate(events.rate))];
    if snapshot.dropped > 0 {
        facts.push(format!("{} dropped", snapshot.dropped));
    }
    facts.extend(snapshot.pools.iter().filter(|pool| pool.is_in_use()).map(pool_fact));
    if snapshot.waiting_at_hooks > 0.0 {
        facts.push(format!("{} waiting at hooks", snapshot.waiting_at_hooks));
    }
    let given = Verdict::ALL.into_iter().filter(|verdict| events.verdicts.of(*verdict) > 0);
    let given: Vec<_> =
        given.map(|verdict| format!("{} {verdict}", count(events.verdicts.of(verdict)))).collect();
    if !given.is_empty() {
        facts.push(given.join(" "));
    }
    facts.extend(snapshot.pools.iter().filter(|pool| !pool.is_in_use()).map(pool_fact));
    facts
}

fn pool_fact(pool: &PoolUsage) -> String {
    let busy = pool.busy();
    let size = pool.slots.get(LIMIT).map(|limit| format!("/{limit}")).unwrap_or_default();
    let queued = pool.queued.filter(|queued| *queued > 0.0);
    let queued = queued.map(|queued| format!(", {queued} waiting")).unwrap_or_default();
    format!("{}: {busy}{size} busy{queued}", escape::line(&pool.pool))
}

/// As many facts as fit on a line.
pub(super) fn joined(facts: &[String], room: usize) -> String {
    let mut line = String::new();
    for fact in facts {
        let separator = if line.is_empty() { "" } else { SEPARATOR };
        if width(&line) + width(separator) + width(fact) > room {
            break;
        }
        line.push_str(separator);
        line.push_str(fact);
    }
    line
}
