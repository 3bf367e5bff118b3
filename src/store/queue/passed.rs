//! Whether events were removed from the queue before a worker had them, by what the servers say of how they give them out.
//!
//! Events have numbers without gaps, and are given out in this order. So the number of the last one that was given out goes on by as
//! much as events are given out, or by less, as some are given out again. If it goes on by more, the events between were not there any
//! more: the stream was purged, or they were deleted.
//!
//! A server that was killed may have forgotten what it has given out, while the stream no more has what was acknowledged of that. Then, too, it
//! passes over numbers. So nothing is said of what was in the stream when the servers may have forgotten something.

use async_nats::jetstream::{
    consumer,
    stream::{ClusterInfo, Info},
};

/// What the servers say of the events that they have given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GivenOut {
    /// How often this daemon has connected to a server.
    pub(super) connections: u64,
    /// Who gives them out; none as long as no worker has asked for any.
    pub(super) by: Option<Giver>,
    /// How many were given out, again or not.
    pub(super) count: u64,
    /// The number of the last that was given out, or passed over.
    pub(super) last: u64,
}

/// Who gives events out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Giver {
    /// When the consumer was made.
    created: i128,
    /// The server that leads it, and since when.
    leader: Option<String>,
    since: Option<i128>,
}

/// How far it is known that no event was passed over.
#[derive(Debug, Default)]
pub(super) struct PassedOver {
    former: Option<GivenOut>,
    /// Up to which number the servers may pass over what was given out before.
    unsure_to: u64,
}

impl GivenOut {
    /// What a consumer has given out. None if it cannot be told whether its server was started in between.
    pub(super) fn of(consumer: &consumer::Info, connections: u64) -> Option<Self> {
        let cluster = consumer.cluster.as_ref();
        let is_alone = cluster.is_none_or(|cluster| cluster.name.as_deref().unwrap_or_default().is_empty());
        let since = cluster.and_then(|cluster| Some(cluster.leader_since?.unix_timestamp_nanos()));
        if !is_alone && since.is_none() {
            return None;
        }
        let created = consumer.created.unix_timestamp_nanos();
        let leader = cluster.and_then(|cluster| cluster.leader.clone());
        Some(Self {
            connections,
            by: Some(Giver { created, leader, since }),
            count: consumer.delivered.consumer_sequence,
            last: consumer.delivered.stream_sequence,
        })
    }

    /// Nothing of this stream.
    pub(super) fn nothing(stream: &Info, connections: u64) -> Self {
        Self { connections, by: None, count: 0, last: stream.state.first_sequence.saturating_sub(1) }
    }

    /// Whether the servers remember in this state what they did in the former one.
    fn goes_on(&self, former: &Self) -> bool {
        self.connections == former.connections
            && (self.by == former.by || former.by.is_none())
            && self.count >= former.count
            && self.last >= former.last
    }
}

impl PassedOver {
    /// How many events were removed since the last time before they were given out, as far as that is sure; none if none were.
    /// `last` is the number of the last event in the stream.
    pub(super) fn more(&mut self, now: &GivenOut, last: u64) -> Option<u64> {
        let former = self.former.replace(now.clone()).filter(|former| now.goes_on(former));
        let Some(former) = former else {
            self.unsure_to = last;
            return None;
        };
        let passed = (now.last - former.last).saturating_sub(now.count - former.count);
        (former.last >= self.unsure_to && passed > 0).then_some(passed)
    }
}

/// Whether the server that says this leads for sure: so many others have been heard of lately that no other one can have been elected.
pub(super) fn leads(cluster: Option<&ClusterInfo>) -> bool {
    /// Shorter than what others wait until they elect another one.
    const LATELY: std::time::Duration = std::time::Duration::from_secs(3);
    let Some(cluster) = cluster else { return true };
    let heard = cluster.replicas.iter().filter(|peer| !peer.offline && peer.active < LATELY).count();
    (heard + 1) * 2 > cluster.replicas.len() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(by: Option<i128>, count: u64, last: u64) -> GivenOut {
        let by = by.map(|created| Giver { created, leader: None, since: None });
        GivenOut { connections: 1, by, count, last }
    }

    #[test]
    fn what_was_removed_before_it_was_given_out_is_counted_and_nothing_else() {
        let led = |since, count, last| {
            let giver = Giver { created: 1, leader: Some("s1".to_owned()), since: Some(since) };
            GivenOut { connections: 1, by: Some(giver), count, last }
        };
        let connected = |connections, count, last| GivenOut { connections, ..given(Some(1), count, last) };
        let one = |count, last| given(Some(1), count, last);
        // Each time what is given out and the last number in the stream, and what was removed.
        for (what, steps) in [
            ("each once", vec![(one(0, 0), 0, None), (one(5, 5), 9, None), (one(9, 9), 9, None)]),
            ("some again", vec![(one(5, 5), 5, None), (one(9, 7), 9, None), (one(12, 9), 9, None)]),
            ("a purge", vec![(one(5, 5), 5, None), (one(5, 9), 9, Some(4)), (one(5, 9), 9, None)]),
            (
                "a purge of a part",
                vec![(one(5, 5), 5, None), (one(7, 9), 9, Some(2)), (one(8, 10), 10, None)],
            ),
            ("removed before the first look", vec![(one(5, 5), 9, None), (one(6, 9), 9, None)]),
            ("after that", vec![(one(5, 5), 9, None), (one(9, 9), 9, None), (one(9, 12), 12, Some(3))]),
            ("no worker yet", vec![(given(None, 0, 0), 0, None), (one(9, 9), 9, None)]),
            ("a purge without workers", vec![(given(None, 0, 0), 0, None), (given(None, 0, 9), 9, Some(9))]),
            ("another consumer", vec![(one(5, 5), 5, None), (given(Some(2), 1, 9), 9, None)]),
            ("a server that forgot", vec![(one(5, 5), 5, None), (one(3, 3), 5, None), (one(3, 5), 5, None)]),
            (
                "the next leader",
                vec![(led(1, 5, 5), 5, None), (led(2, 5, 5), 9, None), (led(2, 5, 9), 9, None)],
            ),
            (
                "another connection",
                vec![
                    (connected(1, 5, 5), 5, None),
                    (connected(2, 6, 9), 9, None),
                    (connected(2, 6, 10), 10, Some(1)),
                ],
            ),
        ] {
            let mut passed = PassedOver::default();
            for (number, (given, last, removed)) in steps.into_iter().enumerate() {
                assert_eq!(passed.more(&given, last), removed, "{what}, look {number}");
            }
        }
    }

    #[test]
    fn a_server_leads_for_sure_only_while_it_hears_of_a_majority() {
        let cluster = |peers: &[(u64, bool)]| -> ClusterInfo {
            let peers = peers.iter().map(|(seconds, offline)| {
                let active = seconds * 1_000_000_000;
                serde_json::json!({"name": "s", "current": true, "offline": offline, "active": active})
            });
            serde_json::from_value(serde_json::json!({"replicas": peers.collect::<Vec<_>>()})).unwrap()
        };
        for (peers, sure) in [
            (&[][..], true),
            (&[(0, false), (0, false)], true),
            (&[(0, false), (9, true)], true),
            (&[(5, false), (4, false)], false),
            (&[(0, true), (0, true)], false),
            (&[(0, false), (9, false), (9, false), (9, false)], false),
        ] {
            assert_eq!(leads(Some(&cluster(peers))), sure, "{peers:?}");
        }
        assert!(leads(None));
    }
}
