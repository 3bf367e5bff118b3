//! The steps that a rule may take for one event. They stand for time, which is looked at only where they are long.

use std::cell::Cell;

use super::{failure::EvaluationError, processor_time::ProcessorTime};

/// The steps of one hook for one event: a few milliseconds. Rules run in the way of their run.
pub(super) const MOST_STEPS: u64 = 200_000;

/// The longest text that an expression makes, in bytes.
pub(super) const LONGEST_TEXT: usize = 1 << 20;

/// The longest list that an expression makes.
pub(super) const LONGEST_LIST: usize = 65_536;

/// How many bytes of a text are looked through in one step.
const BYTES_PER_STEP: usize = 64;

/// How many bytes of JSON are taken apart in one step.
const JSON_BYTES_PER_STEP: usize = 512;

/// How many elements of JSON, which take memory, are made in one step.
const NODES_PER_STEP: usize = 4;

/// How many fields of an object, or elements of a list, are compared in one step.
const ELEMENTS_PER_STEP: usize = 16;

/// How many steps of a search for a pattern are one step. The pattern may have thousands of parts.
const SEARCH_STEPS_PER_STEP: usize = 4096;

/// A search of more steps may take milliseconds.
const LONG_SEARCH: usize = 256 << 10;

/// After so many steps, the time is looked at.
const STEPS_PER_LOOK: u64 = 4096;

/// The steps that are left. What cannot fail spends them all the same: whoever goes on finds that there are none.
pub(super) struct Budget {
    left: Cell<u64>,
    is_exceeded: Cell<bool>,
    /// From the first look on.
    time: Cell<Option<ProcessorTime>>,
}

impl Budget {
    /// All steps.
    pub(super) fn new() -> Self {
        Self { left: Cell::new(MOST_STEPS), is_exceeded: Cell::new(false), time: Cell::new(None) }
    }

    /// Takes steps.
    pub(super) fn take(&self, steps: u64) -> Result<(), EvaluationError> {
        self.spend(steps);
        self.check()
    }

    /// Whether the steps were enough so far.
    pub(super) fn check(&self) -> Result<(), EvaluationError> {
        if self.is_exceeded.get() { Err(EvaluationError::TooManySteps) } else { Ok(()) }
    }

    /// Spends all steps: what is asked for cannot be found out.
    pub(super) fn exhaust(&self) {
        self.is_exceeded.set(true);
    }

    fn spend(&self, steps: u64) {
        let before = self.left.get();
        let left = before.checked_sub(steps);
        self.left.set(left.unwrap_or_default());
        match left {
            None => self.is_exceeded.set(true),
            Some(left) if left / STEPS_PER_LOOK != before / STEPS_PER_LOOK => self.look_at_time(),
            Some(_) => {}
        }
    }

    fn look_at_time(&self) {
        let mut time = self.time.get().unwrap_or_else(ProcessorTime::begin);
        if time.is_over() {
            self.is_exceeded.set(true);
        }
        self.time.set(Some(time));
    }

    fn spend_for(&self, count: usize, per_step: usize) {
        self.spend(u64::try_from(count / per_step).unwrap_or(u64::MAX));
    }

    /// Spends what it costs to take JSON of this length apart.
    pub(super) fn spend_on_json(&self, bytes: usize) {
        self.spend_for(bytes, JSON_BYTES_PER_STEP);
    }

    /// Spends what it costs to keep the elements of a list or an object.
    pub(super) fn spend_on_nodes(&self, count: usize) {
        self.spend_for(count, NODES_PER_STEP);
    }

    /// Spends what it costs to look through the elements of a list, or the fields of an object.
    pub(super) fn spend_on_elements(&self, count: usize) {
        self.spend_for(count, ELEMENTS_PER_STEP);
    }

    /// Spends what it costs to compare two values, texts of this length for example. Returns whether steps are left.
    pub(super) fn spend_on_comparison(&self, bytes: usize) -> bool {
        self.spend_for(bytes + BYTES_PER_STEP, BYTES_PER_STEP);
        !self.is_exceeded.get()
    }

    /// Takes the steps that it costs to look through a text of this length.
    pub(super) fn read(&self, bytes: usize) -> Result<(), EvaluationError> {
        self.spend_for(bytes, BYTES_PER_STEP);
        self.check()
    }

    /// Takes the steps of a search, which gives no result if it would take too long.
    pub(super) fn search(
        &self,
        steps: usize,
        find: impl FnOnce() -> Option<bool>,
    ) -> Result<bool, EvaluationError> {
        self.spend_for(steps, SEARCH_STEPS_PER_STEP);
        self.check()?;
        let Some(found) = find() else {
            self.exhaust();
            return Err(EvaluationError::TooManySteps);
        };
        if steps > LONG_SEARCH {
            self.look_at_time();
        }
        self.check()?;
        Ok(found)
    }

    /// The same for a text that is made, which may not be too long.
    pub(super) fn text_of(&self, bytes: usize) -> Result<(), EvaluationError> {
        if bytes > LONGEST_TEXT {
            return Err(EvaluationError::TooLong);
        }
        self.read(bytes)
    }
}
