//! What an answer waits for before anybody hears of it.

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use super::{
    context::RunContext,
    message::{Caller, RunRejection},
    record::{HaltNotStored, HaltReceipt, RunRecord},
};
use crate::{
    model::{Outcome, RunKey, Verdict},
    store::{Commitment, Moved},
};

/// How long the store of a cluster may take to confirm what hooks have done.
const LONGEST_COMMIT: Duration = Duration::from_secs(2);

/// What an answer waits for.
#[derive(Debug)]
pub(super) struct AnswerGate {
    /// The halt that it tells.
    pub(super) receipt: Option<HaltReceipt>,
    /// What hooks have done.
    pub(super) commitment: Result<Option<Commitment>, Moved>,
}

impl AnswerGate {
    pub(super) fn is_open(&self) -> bool {
        self.receipt.is_none() && matches!(self.commitment, Ok(None))
    }

    /// Waits until the answer may be given.
    ///
    /// Returns an error if it may not.
    pub(super) async fn opened(self) -> Result<(), RunRejection> {
        if let Some(commitment) = self.commitment.map_err(|Moved| RunRejection::Moved)? {
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
        // What the first one has done was confirmed, or its answer forgotten.
        let gate = AnswerGate { receipt, commitment: Ok(None) };
        if gate.is_open() {
            return caller.answer(Ok(outcome));
        }
        tokio::spawn(async move {
            let opened = gate.opened().await;
            caller.answer(opened.map(|()| outcome));
        });
    }

    /// What the answer of an event waits for that began under a claim with this epoch.
    ///
    /// Returns an error if another daemon goes on with the run.
    #[cfg(feature = "cluster")]
    pub(super) fn commitment(&self, key: &RunKey, claim: Option<u64>) -> Result<Option<Commitment>, Moved> {
        let claims = self.cluster.get().and_then(|shared| shared.claims());
        match (claims, claim) {
            (Some(claims), Some(epoch)) => claims.commitment(key, epoch),
            _ => Ok(None),
        }
    }

    /// What the answer of an event waits for.
    #[cfg(not(feature = "cluster"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "there is no cluster in this build")]
    pub(super) fn commitment(&self, _: &RunKey, _: Option<u64>) -> Result<Option<Commitment>, Moved> {
        Ok(None)
    }
}
