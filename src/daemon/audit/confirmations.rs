//! Whether the lines of recent decisions were written: with `audit.required`, no decision is answered before.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::model::DecisionId;

/// How many decisions are remembered. Each is asked about right after it was made, so this is more than enough.
const MAX_REMEMBERED: usize = 1 << 16;

/// What became of a line; `None` while that is not known.
type LineFate = Option<bool>;

/// The lines of recent decisions.
#[derive(Debug, Default)]
pub(super) struct Confirmations(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    lines: HashMap<DecisionId, watch::Receiver<LineFate>>,
    order: VecDeque<DecisionId>,
}

/// RAII guard: says what became of a line. Dropped unused, the line is lost.
#[derive(Debug)]
pub(super) struct LineGuard(watch::Sender<LineFate>);

impl LineGuard {
    /// The line was written.
    pub(super) fn written(self) {
        self.0.send_replace(Some(true));
    }
}

impl Drop for LineGuard {
    fn drop(&mut self) {
        self.0.send_if_modified(|fate| {
            let is_unknown = fate.is_none();
            fate.get_or_insert(false);
            is_unknown
        });
    }
}

impl Confirmations {
    /// Expects the line of a decision.
    pub(super) fn expect(&self, decision: DecisionId) -> LineGuard {
        let (sender, fate) = watch::channel(None);
        let mut remembered = self.0.lock();
        remembered.lines.insert(decision, fate);
        remembered.order.push_back(decision);
        if remembered.order.len() > MAX_REMEMBERED
            && let Some(oldest) = remembered.order.pop_front()
        {
            remembered.lines.remove(&oldest);
        }
        LineGuard(sender)
    }

    /// Whether the line of a decision is expected, or was.
    pub(super) fn expects(&self, decision: DecisionId) -> bool {
        self.0.lock().lines.contains_key(&decision)
    }

    /// Waits until the line of a decision is written or lost. Returns whether it was written; false for a decision whose
    /// line is not expected.
    pub(super) async fn confirm(&self, decision: DecisionId) -> bool {
        let Some(mut fate) = self.0.lock().lines.get(&decision).cloned() else { return false };
        let known = fate.wait_for(Option::is_some).await;
        known.is_ok_and(|fate| *fate == Some(true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_decision_waits_for_its_line_and_a_lost_line_is_told_from_a_written_one() {
        let confirmations = Confirmations::default();
        let [written, lost, unknown] = [1, 2, 3].map(|number| DecisionId::new(7, number));
        let guard = confirmations.expect(written);
        drop(confirmations.expect(lost));
        let (is_written, ()) = tokio::join!(confirmations.confirm(written), async {
            tokio::task::yield_now().await;
            guard.written();
        });
        assert!(is_written && confirmations.confirm(written).await, "it is remembered");
        assert!(!confirmations.confirm(lost).await);
        assert!(!confirmations.expects(unknown) && !confirmations.confirm(unknown).await);
    }
}
