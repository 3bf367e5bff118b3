//! What the answer of a halted run waits for.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{sync::oneshot, time::timeout};

use super::record::RunRecord;
use crate::telemetry::StoreFailure;

/// How long an answer waits for its halt to be on disk. A disk that hangs must not take the verdict away.
const LONGEST_SAVE: Duration = Duration::from_secs(2);

/// A halt that is not on disk yet.
#[derive(Debug)]
pub(crate) struct HaltReceipt {
    pub(super) record: Arc<RunRecord>,
    pub(super) flushed: oneshot::Receiver<()>,
}

impl HaltReceipt {
    /// Waits until the halt is on disk or cannot be. A halt that cannot be stored is still a halt.
    pub(crate) async fn settled(self) {
        // An error means that the store is closed.
        if timeout(LONGEST_SAVE, self.flushed).await.is_err() {
            StoreFailure::Slow.emit();
            tracing::error!("a halt is answered before it is on disk: the disk takes too long");
        }
        self.record.is_halt_settled.store(true, Ordering::Release);
    }
}
