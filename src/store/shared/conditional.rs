//! Messages of the bucket that take the place of exactly the one that was read before.

use std::time::Duration;

use async_nats::jetstream::{
    self, ErrorCode,
    context::{PublishError, PublishErrorKind},
    stream::LastRawMessageErrorKind,
};

use super::{
    bucket::Bucket,
    error::{ClusterError, unreachable},
    publication::{KeyOperation, Message, Put},
};

/// The last message of a key.
#[derive(Debug)]
pub(super) struct LastMessage {
    pub(super) number: u64,
    pub(super) bytes: Vec<u8>,
    /// It ends its key.
    pub(super) is_over: bool,
}

impl Bucket {
    /// Writes a message. A majority of the servers has it then.
    ///
    /// Returns an error if no server confirms it in this time. It may be written all the same.
    pub(super) async fn write(
        &self,
        key: &str,
        Message(message): Message,
        patience: Duration,
    ) -> Result<Put, ClusterError> {
        match self.publish(key, message, patience).await {
            Ok(number) => Ok(Put::Written(number)),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(Put::Taken),
            Err(error) if is_contended(&error) => Ok(Put::Contended),
            Err(error) => Err(unreachable(&error)),
        }
    }

    /// The last message of a key, as the server knows that leads the stream. One that leads no more may know an older one: who
    /// relies on it writes in its place.
    pub(super) async fn last(&self, key: &str) -> Result<Option<LastMessage>, ClusterError> {
        let stream = self.stream().await?;
        match stream.get_last_raw_message_by_subject(&self.subject(key)).await {
            Ok(message) => Ok(Some(LastMessage {
                number: message.sequence,
                is_over: KeyOperation::of(Some(&message.headers)).is_end(),
                bytes: message.payload.to_vec(),
            })),
            Err(error) if matches!(error.kind(), LastRawMessageErrorKind::NoMessageFound) => Ok(None),
            Err(error) => Err(unreachable(&error)),
        }
    }
}

/// Whether a server has refused a message because of another one that is not confirmed yet.
fn is_contended(error: &PublishError) -> bool {
    let refused =
        std::error::Error::source(error).and_then(|source| source.downcast_ref::<jetstream::Error>());
    refused.is_some_and(|refused| refused.error_code() == ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT)
}
