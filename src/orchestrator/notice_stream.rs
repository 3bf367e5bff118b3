//! The stream of notices for a program that watches hooks and outcomes.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::{
    StreamExt,
    stream::{self, BoxStream, Stream},
};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use crate::run::Notice;

/// The notices since [`Orchestrator::subscribe`](crate::Orchestrator::subscribe) was called, in order.
///
/// A subscriber never slows hooks down. The last 4,096 notices are kept for it; one that falls further behind loses
/// the oldest, gets one [`NoticesLost`] with their number in their place, and goes on with the oldest that is left.
/// The stream ends when the orchestrator is gone. It is also a [`futures_core::Stream`](futures_util::Stream).
pub struct NoticeStream(BoxStream<'static, Result<Notice, NoticesLost>>);

/// A subscriber was too slow: the oldest notices are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{count} notices were dropped because the subscriber was too slow")]
#[non_exhaustive]
pub struct NoticesLost {
    /// How many were dropped.
    pub count: u64,
}

impl NoticeStream {
    pub(super) fn new(receiver: Receiver<Notice>) -> Self {
        Self(stream::unfold(receiver, receive).fuse().boxed())
    }

    /// Waits for the next notice; `None` when the orchestrator is gone. Cancel safe: a dropped future loses nothing.
    ///
    /// Returns [`NoticesLost`] in the place of notices that were dropped; the next call goes on after them.
    pub async fn next(&mut self) -> Option<Result<Notice, NoticesLost>> {
        self.0.next().await
    }
}

/// One step of the stream: the next notice, and the receiver for the one after it.
async fn receive(mut receiver: Receiver<Notice>) -> Option<(Result<Notice, NoticesLost>, Receiver<Notice>)> {
    match receiver.recv().await {
        Ok(notice) => Some((Ok(notice), receiver)),
        Err(RecvError::Lagged(count)) => Some((Err(NoticesLost { count }), receiver)),
        Err(RecvError::Closed) => None,
    }
}

impl Stream for NoticeStream {
    type Item = Result<Notice, NoticesLost>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_next_unpin(context)
    }
}

impl fmt::Debug for NoticeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoticeStream").finish_non_exhaustive()
    }
}
