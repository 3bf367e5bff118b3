//! Messages as they are written into the bucket, and what becomes of them.

use std::time::Duration;

use async_nats::jetstream::message::PublishMessage;

/// The header that says what a message does to its key, and its value for the end of a key.
pub(super) const OPERATION: &str = "KV-Operation";
pub(super) const DELETE: &str = "DEL";

/// How long a server may take to confirm a message.
pub(super) const PATIENCE: Duration = Duration::from_millis(700);

/// A message of a key.
pub(super) struct Message(pub(super) PublishMessage);

impl Message {
    pub(super) fn put(bytes: Vec<u8>) -> Self {
        Self(PublishMessage::build().payload(bytes.into()))
    }

    /// One that ends its key.
    pub(super) fn end(bytes: Vec<u8>) -> Self {
        let Self(message) = Self::put(bytes);
        Self(message.header(OPERATION, DELETE))
    }

    /// Written only in place of the message with this number; 0 if there is to be none.
    pub(super) fn after(self, number: Option<u64>) -> Self {
        let Self(message) = self;
        Self(match number {
            Some(number) => message.expected_last_subject_sequence(number),
            None => message,
        })
    }
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// It has this number in the stream.
    Written(u64),
    /// Another message is in its place: nothing was written.
    Taken,
    /// Another message is on its way to its place: nothing was written.
    Contended,
}
