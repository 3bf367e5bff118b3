//! What is too much. Refuses to enforce it.

use std::{num::NonZeroUsize, time::Duration};

use super::{super::section::Section, count};

/// What is too much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitSettings {
    /// The largest event, in bytes.
    pub payload: usize,
    /// How much of a command's standard output is kept, in bytes.
    pub stdout: usize,
    /// How much of a command's standard error is kept, in bytes.
    pub stderr: usize,
    /// How much a server may answer an http hook with, in bytes, decoded.
    pub http_body: usize,
    /// How much a model may answer with, in bytes, decoded.
    pub model_body: usize,
    /// How many runs are remembered.
    pub runs: NonZeroUsize,
    /// How many events are worked on at the same time.
    pub in_flight: NonZeroUsize,
    /// How many events of one run may wait.
    pub pending_per_run: NonZeroUsize,
    /// How long an event may wait for its turn.
    pub pending_deadline: Duration,
    /// How many answers of one run are kept for events that are sent again.
    pub answers_per_run: NonZeroUsize,
    /// How many connections to the daemon are open.
    pub connections: NonZeroUsize,
    /// How many requests the daemon works on at the same time.
    pub requests: NonZeroUsize,
    /// How many readers the daemon's stream has.
    pub streams: NonZeroUsize,
    /// How long the head of a request may take.
    pub header_timeout: Duration,
    /// How long the body of a request, or the reading of an answer, may stand still.
    pub body_timeout: Duration,
    /// How long a connection may be idle.
    pub idle_timeout: Duration,
    /// How many workspaces are registered.
    pub workspaces: NonZeroUsize,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            payload: 16 << 20,
            stdout: 1 << 20,
            stderr: 64 << 10,
            http_body: 1 << 20,
            model_body: 1 << 20,
            runs: count(1_000_000),
            in_flight: count(16_384),
            pending_per_run: count(64),
            pending_deadline: Duration::from_secs(30),
            answers_per_run: count(64),
            connections: count(10_240),
            requests: count(4096),
            streams: count(64),
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_mins(5),
            workspaces: count(10_000),
        }
    }
}

impl LimitSettings {
    pub(super) fn take(&mut self, limits: &mut Section<'_>) {
        limits.size("payload", &mut self.payload);
        limits.size("stdout", &mut self.stdout);
        limits.size("stderr", &mut self.stderr);
        limits.size("http_body", &mut self.http_body);
        limits.size("model_body", &mut self.model_body);
        limits.count("runs", &mut self.runs);
        limits.count("in_flight", &mut self.in_flight);
        limits.count("pending_per_run", &mut self.pending_per_run);
        limits.duration("pending_deadline", &mut self.pending_deadline);
        limits.count("answers_per_run", &mut self.answers_per_run);
        limits.count("connections", &mut self.connections);
        limits.count("requests", &mut self.requests);
        limits.count("streams", &mut self.streams);
        limits.duration("header_timeout", &mut self.header_timeout);
        limits.duration("body_timeout", &mut self.body_timeout);
        limits.duration("idle_timeout", &mut self.idle_timeout);
        limits.count("workspaces", &mut self.workspaces);
    }
}
