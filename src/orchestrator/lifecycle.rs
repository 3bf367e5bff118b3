//! Lifecycle events are put into the outbox, and in a cluster with a queue from there into the queue.

use std::sync::Arc;

use super::{
    error::{DispatchError, Overload},
    handle::Inner,
};
use crate::{
    model::{Delivery, Event, Workspace},
    registry::Plan,
    run::{CourseTicket, OutboxRefusal},
};
#[cfg(not(feature = "cluster"))]
use crate::{
    model::{Outcome, RunKey},
    registry::Snapshot,
    run::EventSender,
};

impl Inner {
    /// Puts a lifecycle event into the outbox, if there is one. If nobody waits for its outcome, it is on disk then.
    ///
    /// Returns an error if it cannot be, and nobody would hear what became of it.
    pub(super) async fn accept(
        &self,
        workspace: &Workspace,
        event: &Arc<Event>,
        plan: &Plan,
    ) -> Result<Option<CourseTicket>, DispatchError> {
        let Some(outbox) = self.context.outbox.load_full() else { return Ok(None) };
        let is_awaited = event.delivery == Delivery::Awaited;
        match outbox.accept(workspace, event, plan.required(), is_awaited) {
            Ok(accepted) => accepted.stored().await.map(Some).map_err(DispatchError::NotStored),
            Err(_) if is_awaited => Ok(None),
            Err(refusal) => Err(self.refused_by_outbox(refusal)),
        }
    }

    pub(super) fn refused_by_outbox(&self, refusal: OutboxRefusal) -> DispatchError {
        match refusal {
            OutboxRefusal::Full => self.shed(Overload::Outbox),
            OutboxRefusal::TooLarge { size, limit } => DispatchError::LargerThanOutbox { size, limit },
        }
    }
}

#[cfg(not(feature = "cluster"))]
#[expect(clippy::unused_self, clippy::unused_async, reason = "as with clusters")]
impl Inner {
    /// There is no queue in this build.
    pub(super) fn is_queued(&self, _: &Event, _: &Plan) -> bool {
        false
    }

    /// Never called.
    pub(super) async fn put_aside(
        &self,
        _: EventSender,
        _: &Snapshot,
        _: &RunKey,
        _: Event,
        _: &Plan,
    ) -> Result<Outcome, DispatchError> {
        Err(DispatchError::RunLost)
    }
}
