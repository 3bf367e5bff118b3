//! Pool usage, read from the daemon's metrics. Metrics that are missing or invalid are skipped.

use std::collections::BTreeMap;

use serde::Serialize;

const QUEUE: &str = "hookyard_queue_depth";
const SLOTS: &str = "hookyard_pool_slots";

const HOOKS: &str = "hookyard_hook_waiting";

/// The state of slots that run a hook.
const USED: &str = "used";

/// The state of all slots there are.
pub(super) const LIMIT: &str = "limit";

/// The usage of a pool.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct PoolUsage {
    pub(super) pool: String,
    /// How many invocations wait in its queue.
    pub(super) queued: Option<f64>,
    /// How many slots are in each state.
    pub(super) slots: BTreeMap<String, f64>,
}

impl PoolUsage {
    /// How many slots run a hook.
    pub(super) fn busy(&self) -> f64 {
        self.slots.get(USED).copied().unwrap_or_default()
    }

    /// Whether a hook runs or waits.
    pub(super) fn is_in_use(&self) -> bool {
        self.busy() > 0.0 || self.queued.is_some_and(|queued| queued > 0.0)
    }
}

/// How many invocations wait at hooks' own limits and for their workers, in a text of metrics.
pub(super) fn waiting_at_hooks(metrics: &str) -> f64 {
    let lines = metrics.lines().filter(|line| line.starts_with(HOOKS));
    lines.filter_map(sample).filter(|(name, ..)| *name == HOOKS).map(|(_, _, value)| value).sum()
}

/// The pools in a text of metrics, by name.
pub(super) fn read(metrics: &str) -> Vec<PoolUsage> {
    let mut pools: BTreeMap<String, PoolUsage> = BTreeMap::new();
    for line in metrics.lines().filter(|line| line.starts_with(QUEUE) || line.starts_with(SLOTS)) {
        let Some((name, labels, value)) = sample(line) else { continue };
        let Some(pool) = labels.get("pool") else { continue };
        let known = pools
            .entry(pool.clone())
            .or_insert_with(|| PoolUsage { pool: pool.clone(), ..PoolUsage::default() });
        if name == QUEUE {
            *known.queued.get_or_insert(0.0) += value;
        } else if let (SLOTS, Some(state)) = (name, labels.get("state")) {
            *known.slots.entry(state.clone()).or_default() += value;
        }
    }
    pools.into_values().collect()
}

/// The name, labels and value of a line.
fn sample(line: &str) -> Option<(&str, BTreeMap<String, String>, f64)> {
    let (name, rest) = line.split_once('{')?;
    let (labels, value) = rest.rsplit_once('}')?;
    let value: f64 = value.split_whitespace().next()?.parse().ok()?;
    let mut found = BTreeMap::new();
    let mut rest = labels;
    while let Some((label, after)) = rest.split_once("=\"") {
        let (value, after) = after.split_once('"')?;
        found.insert(label.trim_start_matches(',').trim().to_owned(), value.to_owned());
        rest = after;
    }
    value.is_finite().then_some((name, found, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_found_among_other_metrics() {
        let text = "# TYPE hookyard_queue_depth gauge\n\
            hookyard_queue_depth{pool=\"http\"} 2\n\
            hookyard_pool_slots{pool=\"http\",state=\"used\"} 3 1700000000\n\
            hookyard_pool_slots{state=\"limit\", pool=\"http\"} 16\n\
            hookyard_pool_slots{pool=\"command\",state=\"limit\"} 1\n\
            hookyard_hook_waiting{hook=\"a\"} 2\n\
            hookyard_hook_waiting{hook=\"b\"} 3\n\
            hookyard_events_total{pool=\"no\"} 1\n";
        let slots = |states: &[(&str, f64)]| {
            states.iter().map(|(state, number)| ((*state).to_owned(), *number)).collect()
        };
        let expected = [
            PoolUsage { pool: "command".into(), queued: None, slots: slots(&[("limit", 1.0)]) },
            PoolUsage {
                pool: "http".into(),
                queued: Some(2.0),
                slots: slots(&[("used", 3.0), ("limit", 16.0)]),
            },
        ];
        assert_eq!(read(text), expected);
        assert!(expected[1].is_in_use() && (waiting_at_hooks(text) - 5.0).abs() < f64::EPSILON);
    }

    #[test]
    fn missing_and_invalid_metrics_are_skipped() {
        assert_eq!(read(""), []);
        assert_eq!(
            read(
                "hookyard_queue_depth 3\nhookyard_queue_depth{pool=\"x\nhookyard_pool_slots{pool=\"a\"} NaN"
            ),
            []
        );
    }
}
