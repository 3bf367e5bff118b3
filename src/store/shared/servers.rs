//! Whether the servers in `cluster.store` have one bucket. Those of two NATS clusters have one each, and a node would know only the
//! halts of the one that it happens to be connected to.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use async_nats::jetstream::context::ContextBuilder;
use futures_util::future::join_all;
use tokio::time::{sleep, timeout};

use super::{bucket::Bucket, connection::connect_to, core::ClusterCore, error::ClusterError};

/// How long a server may take to say which bucket it has.
const PATIENCE: Duration = Duration::from_millis(1500);

/// How often they are asked before a difference is believed: while the bucket is being made, or the one that leads changes, what
/// they say at the same moment may differ.
const TRIES: u32 = 3;
const RETRY: Duration = Duration::from_millis(500);

/// How often a node asks.
const PAUSE: Duration = Duration::from_mins(1);

/// When the bucket of a server was made, in nanoseconds, which no other bucket was; none if it has no bucket.
type Made = Option<i128>;

/// Asks the servers from time to time: one may be started with another configuration.
pub(super) async fn watch(core: Arc<ClusterCore>) {
    if !core.are_one_store.load(Ordering::Acquire) {
        // The store was away, so that no server could say anything. What else is wrong with it, the watcher tells.
        core.bucket.opened().await.ok();
        look(&core).await;
    }
    loop {
        sleep(PAUSE).await;
        look(&core).await;
    }
}

async fn look(core: &ClusterCore) {
    let checked = core.bucket.check_servers().await;
    core.are_one_store.store(checked.is_ok(), Ordering::Release);
    if let Err(error) = checked {
        tracing::error!(%error, "halts are not safe in the store of the cluster");
        *core.problem.lock() = Some(error.to_string());
    }
}

impl Bucket {
    /// Asks each server over a connection of its own which bucket it has. One that does not answer may be away, and is passed over.
    ///
    /// Returns an error if two of them do not have the same one.
    pub(super) async fn check_servers(&self) -> Result<(), ClusterError> {
        let servers = &self.options().servers;
        if servers.len() < 2 {
            return Ok(());
        }
        let mut tries = 0;
        loop {
            tries += 1;
            let found = join_all(servers.iter().map(|server| self.made_at(server))).await;
            let Some((one, other)) = differing(&found) else { return Ok(()) };
            if tries == TRIES {
                let (one, other) = (servers[one].clone(), servers[other].clone());
                return Err(ClusterError::Apart { stream: self.stream_name(), one, other });
            }
            sleep(RETRY).await;
        }
    }

    /// When the bucket of this server was made; none if it does not answer.
    async fn made_at(&self, server: &str) -> Option<Made> {
        let asked = async {
            let client = connect_to(server, self.options()).await?;
            self.found_by(&ContextBuilder::new().timeout(PATIENCE).build(client)).await
        };
        let stream = timeout(PATIENCE, asked).await.ok()?.ok()?;
        Some(stream.map(|stream| stream.cached_info().created.unix_timestamp_nanos()))
    }
}

/// Two servers that do not have the same bucket, if there are two.
fn differing(found: &[Option<Made>]) -> Option<(usize, usize)> {
    let mut known = found.iter().enumerate().filter_map(|(server, made)| Some((server, (*made)?)));
    let (first, made) = known.next()?;
    known.find(|(_, other)| *other != made).map(|(other, _)| (first, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_answer_have_the_same_bucket_or_none_of_them_has_one() {
        const AWAY: Option<Made> = None;
        const WITHOUT: Option<Made> = Some(None);
        let made = |at| Some(Some(at));
        for (found, expected) in [
            (&[AWAY, AWAY][..], None),
            (&[WITHOUT, WITHOUT, AWAY], None),
            (&[made(7), AWAY, made(7)], None),
            (&[AWAY, made(7)], None),
            (&[made(7), made(7), made(8)], Some((0, 2))),
            (&[AWAY, made(8), made(7)], Some((1, 2))),
            (&[made(7), WITHOUT], Some((0, 1))),
            (&[WITHOUT, AWAY, made(7)], Some((0, 2))),
        ] {
            assert_eq!(differing(found), expected, "{found:?}");
        }
    }
}
