//! Messages as they are written into the bucket, and what becomes of them.

use std::time::Duration;

use async_nats::{HeaderMap, HeaderValue, jetstream::message::PublishMessage};

/// The header that says what a message does to its key, and its values: one that ends a key is written, and two are read.
const OPERATION: &str = "KV-Operation";
const WRITE: &str = "PUT";
const DELETE: &str = "DEL";
const PURGE: &str = "PURGE";

/// How long a server may take to confirm a message.
pub(super) const PATIENCE: Duration = Duration::from_millis(700);

/// What a message that was read does to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyOperation {
    Put,
    End,
    /// Something that this version does not know. It ends nothing.
    Unknown,
}

impl KeyOperation {
    pub(super) fn of(headers: Option<&HeaderMap>) -> Self {
        match headers.and_then(|headers| headers.get(OPERATION)).map(HeaderValue::as_str) {
            None | Some(WRITE) => Self::Put,
            Some(DELETE | PURGE) => Self::End,
            Some(_) => Self::Unknown,
        }
    }

    pub(super) fn is_end(self) -> bool {
        self == Self::End
    }
}

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
