//! Why no more events can be sent to a target.

/// Why no more events can be sent.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(in super::super) struct TargetGone(pub(in super::super) String);
