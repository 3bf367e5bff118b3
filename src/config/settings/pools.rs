//! How many hooks run and wait, by kind of handler. Refuses to run any.

use std::{num::NonZeroUsize, time::Duration};

use super::{super::section::Section, count};

/// How many hooks run and wait, by kind of handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSettings {
    /// Command hooks.
    pub command: WorkerPoolSettings,
    /// Http hooks.
    pub http: WorkerPoolSettings,
    /// Prompt hooks.
    pub prompt: WorkerPoolSettings,
    /// Agent hooks.
    pub agent: WorkerPoolSettings,
    /// Native hooks.
    pub native: NativePoolSettings,
}

/// How many hooks of one kind of handler run and wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerPoolSettings {
    /// How many run at the same time.
    pub concurrency: NonZeroUsize,
    /// How many may wait; one more is shed.
    pub queue: NonZeroUsize,
    /// How long one may wait before it is shed.
    pub queue_deadline: Duration,
}

/// How many native hooks run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativePoolSettings {
    /// How many run at the same time.
    pub concurrency: NonZeroUsize,
}

impl Default for PoolSettings {
    fn default() -> Self {
        let usual = WorkerPoolSettings {
            concurrency: count(64),
            queue: count(1024),
            queue_deadline: Duration::from_secs(30),
        };
        let prompt = WorkerPoolSettings { concurrency: count(16), queue: count(256), ..usual.clone() };
        let agent = WorkerPoolSettings { concurrency: count(8), queue: count(128), ..usual.clone() };
        let native = NativePoolSettings { concurrency: count(1024) };
        Self { command: usual.clone(), http: usual, prompt, agent, native }
    }
}

impl PoolSettings {
    pub(super) fn take(&mut self, pools: &mut Section<'_>) {
        pools.section("command", |command| self.command.take(command));
        pools.section("http", |http| self.http.take(http));
        pools.section("prompt", |prompt| self.prompt.take(prompt));
        pools.section("agent", |agent| self.agent.take(agent));
        pools.section("native", |native| native.count("concurrency", &mut self.native.concurrency));
    }
}

impl WorkerPoolSettings {
    fn take(&mut self, pool: &mut Section<'_>) {
        pool.count("concurrency", &mut self.concurrency);
        pool.count("queue", &mut self.queue);
        pool.duration("queue_deadline", &mut self.queue_deadline);
    }
}
