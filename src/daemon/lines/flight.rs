//! Events in flight on a connection.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::{
    FutureExt,
    future::{AbortHandle, Abortable, Aborted},
};

use super::{answer::LineAnswer, door::Deciding, request::LineId};

/// An event in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) number: u64,
    pub(super) abort: AbortHandle,
}

/// The answer of an event in flight, when it comes.
pub(super) struct Answering<'d> {
    pub(super) id: LineId,
    pub(super) number: u64,
    pub(super) deciding: Abortable<Deciding<'d>>,
}

impl Future for Answering<'_> {
    type Output = (LineId, u64, Result<LineAnswer, Aborted>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.deciding.poll_unpin(context).map(|answer| (this.id.clone(), this.number, answer))
    }
}
