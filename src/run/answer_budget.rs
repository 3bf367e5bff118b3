//! How much memory the answers that runs remember may take.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// What the answers may take that runs remember.
#[derive(Debug)]
pub(crate) struct AnswerLimits {
    /// The most answers of one run.
    pub(super) per_run: usize,
    pub(super) budget: Arc<AnswerBudget>,
}

impl AnswerLimits {
    /// So many answers of one run, and so many bytes of all.
    pub(crate) fn new(per_run: NonZeroUsize, bytes: usize) -> Self {
        Self { per_run: per_run.get(), budget: Arc::new(AnswerBudget::new(bytes)) }
    }
}

/// How many bytes the answers of all runs together may take.
#[derive(Debug)]
pub(super) struct AnswerBudget {
    used: AtomicUsize,
    most: usize,
    /// Whether there was no room for the last one.
    is_full: AtomicBool,
}

impl AnswerBudget {
    pub(super) fn new(most: usize) -> Self {
        Self { used: AtomicUsize::new(0), most, is_full: AtomicBool::new(false) }
    }

    /// How many bytes are remembered.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// How many bytes may be remembered.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Takes so much of it. Returns whether it was there.
    fn take(&self, bytes: usize) -> bool {
        let take = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.most);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Takes down whether there was room for an answer, and warns when there is none any more.
    pub(super) fn note_room(&self, has_room: bool) {
        if self.is_full.load(Ordering::Relaxed) != has_room {
            return;
        }
        self.is_full.store(!has_room, Ordering::Relaxed);
        if !has_room {
            tracing::warn!(
                limit = self.most,
                "the answers of runs take as much memory as `limits.answers_bytes` allows: until some are forgotten, the \
                 hooks of new runs run again for events that are sent again"
            );
        }
    }
}

/// RAII guard: the part of the budget that the answers of one run take.
#[derive(Debug)]
pub(super) struct AnswerShare {
    budget: Arc<AnswerBudget>,
    bytes: usize,
}

impl AnswerShare {
    /// Nothing of this budget yet.
    pub(super) fn none_of(budget: &Arc<AnswerBudget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Takes so much more. Returns whether it was there.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let has_room = self.budget.take(bytes);
        if has_room {
            self.bytes += bytes;
        }
        has_room
    }

    /// Gives back so much of it.
    pub(super) fn shrink(&mut self, bytes: usize) {
        self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
        self.bytes -= bytes;
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for AnswerShare {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}
