//! A record of dispatched events, for test doubles.

use parking_lot::Mutex;

use crate::model::Event;

/// Every event that was dispatched, in order.
#[derive(Debug, Default)]
pub(crate) struct EventLog(Mutex<Vec<Event>>);

impl EventLog {
    pub(super) fn record(&self, event: &Event) {
        self.0.lock().push(event.clone());
    }

    /// The events so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().clone()
    }

    /// Forgets them.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}
