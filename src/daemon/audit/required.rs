//! With `audit.required`, an answer waits for its line, and one that no hook was asked for gets a line as well.

use std::time::Duration;

use tokio::time::timeout;

use super::{
    confirmations::Confirmations,
    line::{AuditEntry, UnaskedLine, UnaskedReason},
    queue::{Audit, is_accepted_only},
};
use crate::{
    FinishedEvent,
    model::{DecisionId, DialectName, EventOrigin, Outcome},
};

/// How long an answer waits for its line.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);

impl Audit {
    /// Whether answers wait for their lines.
    pub(in crate::daemon) fn is_required(&self) -> bool {
        self.confirmations.is_some()
    }

    /// Waits for the line of a decision, where answers wait for their lines. If the runs have recorded none, `answered` is:
    /// no hook wanted the event, or nobody waits for its hooks. Returns whether the decision may be answered.
    pub(in crate::daemon) async fn confirm(
        &self,
        decision: DecisionId,
        answered: impl FnOnce() -> Option<FinishedEvent>,
    ) -> bool {
        let Some(confirmations) = &self.confirmations else { return true };
        if !confirmations.expects(decision) {
            // Its workspace is gone meanwhile.
            let Some(answered) = answered() else { return false };
            let accepted = is_accepted_only(&answered.event);
            let mut entry = AuditEntry::of(answered, self.patches);
            entry.accepted = accepted;
            entry.guard = Some(confirmations.expect(decision));
            self.record(entry);
        }
        is_written(confirmations, decision).await
    }

    /// Records an answer that no hook was asked for, and waits for its line, where answers wait for their lines. Returns
    /// whether the line was written.
    pub(in crate::daemon) async fn confirm_unasked(
        &self,
        outcome: &Outcome,
        unasked: UnaskedReason,
        origin: Option<&EventOrigin>,
        dialect: DialectName,
    ) -> bool {
        let Some(confirmations) = &self.confirmations else { return true };
        let decision = outcome.decision_id;
        let guard = confirmations.expect(decision);
        self.record_unasked(UnaskedLine::new(outcome, unasked, origin, dialect), guard);
        is_written(confirmations, decision).await
    }
}

/// Waits for the line of a decision. Returns whether it was written in time.
async fn is_written(confirmations: &Confirmations, decision: DecisionId) -> bool {
    timeout(CONFIRM_TIMEOUT, confirmations.confirm(decision)).await.unwrap_or(false)
}
