//! The steps that a rule may take for one event. They stand for time, which rules do not measure.

use std::cell::Cell;

use super::failure::EvaluationError;

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

/// The steps that are left. What cannot fail spends them all the same: whoever goes on finds that there are none.
pub(super) struct Budget {
    left: Cell<u64>,
    is_exceeded: Cell<bool>,
}

impl Budget {
    /// All steps.
    pub(super) fn new() -> Self {
        Self { left: Cell::new(MOST_STEPS), is_exceeded: Cell::new(false) }
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
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or_default());
        if left.is_none() {
            self.is_exceeded.set(true);
        }
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

    /// The same for a text that is made, which may not be too long.
    pub(super) fn text_of(&self, bytes: usize) -> Result<(), EvaluationError> {
        if bytes > LONGEST_TEXT {
            return Err(EvaluationError::TooLong);
        }
        self.read(bytes)
    }
}
