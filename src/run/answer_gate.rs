//! What an answer waits for before anybody hears of it.

use std::{sync::Arc, time::Duration};

use tokio::{sync::oneshot, time::timeout};

use super::{
    context::RunContext,
    message::{Caller, RunRejection},
    record::{HaltNotStored, HaltReceipt, RunRecord},
};
use crate::{
    model::{Outcome, RunKey, Verdict},
    store::Moved,
};

/// How long the store of a cluster may take to confirm what hooks have done.
const LONGEST_COMMIT: Duration = Duration::from_secs(2);

/// Notified once what hooks have done in a run holds on all daemons of a cluster, or that another one goes on with it.
type Commitment = oneshot::Receiver<Result<(), Moved>>;

/// What an answer waits for.
#[derive(Debug)]
pub(super) struct AnswerGate {
    /// The halt that it tells.
    pub(super) receipt: Option<HaltReceipt>,
    /// What hooks have done.
    pub(super) commitment: Option<Commitment>,
}

impl AnswerGate {
    pub(super) fn is_open(&self) -> bool {
        self.receipt.is_none() && self.commitment.is_none()
    }

    /// Waits until the answer may be given.
    ///
    /// Returns an error if it may not.
    pub(super) async fn opened(self) -> Result<(), RunRejection> {
        if let Some(commitment) = self.commitment {
            let committed = timeout(LONGEST_COMMIT, commitment).await;
            // Without a word of the store, another daemon may go on with the run as well.
            committed.ok().and_then(Result::ok).and_then(Result::ok).ok_or(RunRejection::Moved)?;
        }
        match self.receipt {
            Some(receipt) => receipt.settled().await.map_err(|HaltNotStored| RunRejection::HaltNotStored),
            None => Ok(()),
        }
    }
}

impl RunContext {
    /// Answers an event that has an outcome already, since its run is halted or it repeats an earlier one.
    pub(super) fn answer_known(
        &self,
        key: &RunKey,
        record: &Arc<RunRecord>,
        caller: Caller,
        outcome: Outcome,
    ) {
        let is_halted = outcome.verdict == Verdict::Halt;
        let receipt = is_halted.then(|| self.directory.receipt(key, record)).flatten();
        let gate = AnswerGate { receipt, commitment: self.commitment(key) };
        if gate.is_open() {
            return caller.answer(Ok(outcome));
        }
        tokio::spawn(async move {
            let opened = gate.opened().await;
            caller.answer(opened.map(|()| outcome));
        });
    }

    /// What the answers of a run wait for, in a cluster whose promises are strict.
    #[cfg(feature = "cluster")]
    pub(super) fn commitment(&self, key: &RunKey) -> Option<Commitment> {
        self.cluster.get()?.claims()?.commitment(key)
    }

    /// What the answers of a run wait for.
    #[cfg(not(feature = "cluster"))]
    #[expect(clippy::unused_self, reason = "there is no cluster in this build")]
    pub(super) fn commitment(&self, _: &RunKey) -> Option<Commitment> {
        None
    }
}
