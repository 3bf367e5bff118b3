//! Metrics of the daemon's routes and listeners, with their handles resolved when it starts.

use std::{fmt, sync::OnceLock};

use metrics::{Counter, Gauge};

use super::{meters::float, names};

/// The hundreds of a status, as labels.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The classes that every route has from the start.
const USUAL: [u16; 2] = [2, 5];

/// The metric handles of the daemon's door.
pub(crate) struct ApiMeters {
    routes: Vec<RouteMeters>,
    dropped: Counter,
    not_loaded: Gauge,
}

struct RouteMeters {
    path: &'static str,
    requests: [OnceLock<Counter>; CLASSES.len()],
}

impl ApiMeters {
    /// The handles for these routes, as they are declared, with their parameters' names.
    pub(crate) fn resolve(routes: impl Iterator<Item = &'static str>) -> Self {
        let routes = routes.map(|path| RouteMeters { path, requests: Default::default() });
        let not_loaded = names::WORKSPACES_NOT_LOADED.gauge([]);
        not_loaded.set(0.0);
        let dropped = names::STREAM_DROPPED.counter([]);
        let meters = Self { routes: routes.collect(), dropped, not_loaded };
        for route in &meters.routes {
            for class in USUAL {
                route.of(class).increment(0);
            }
        }
        meters
    }

    /// Counts an answer to a request by the hundreds of its status.
    pub(crate) fn answered(&self, route: &'static str, class: u16) {
        if let Some(route) = self.routes.iter().find(|known| known.path == route) {
            route.of(class).increment(1);
        }
    }

    /// Counts so many good answers at once, where looking the route up for each would cost more than the answer.
    pub(crate) fn answered_well(&self, route: &'static str, answers: u64) {
        if let Some(route) = self.routes.iter().find(|known| known.path == route) {
            route.of(2).increment(answers);
        }
    }

    /// Sets how many workspaces of the settings are not loaded.
    pub(crate) fn set_not_loaded(&self, workspaces: usize) {
        self.not_loaded.set(float(workspaces));
    }

    /// Counts notices that a reader of the stream was too slow for.
    pub(crate) fn dropped(&self, notices: u64) {
        self.dropped.increment(notices);
    }
}

impl RouteMeters {
    /// A status beyond the known ones counts as the server's fault.
    fn of(&self, class: u16) -> &Counter {
        let number = usize::from(class).checked_sub(1).filter(|number| *number < CLASSES.len());
        let number = number.unwrap_or(CLASSES.len() - 1);
        self.requests[number].get_or_init(|| names::API_REQUESTS.counter([self.path, CLASSES[number]]))
    }
}

impl fmt::Debug for ApiMeters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiMeters").finish_non_exhaustive()
    }
}

/// What a listener refused beyond its limits.
#[derive(Debug)]
pub(crate) struct ListenerMeters {
    connections: RefusalCounter,
    requests: RefusalCounter,
    bodies: RefusalCounter,
    streams: RefusalCounter,
}

/// A counter of what is refused beyond one limit.
#[derive(Clone)]
pub(crate) struct RefusalCounter(Counter);

impl ListenerMeters {
    /// The handles for a listener; each series starts at zero, so that the rate of the first refusal is seen.
    pub(crate) fn resolve(listener: &str) -> Self {
        let of = |limit: &str| {
            let counter = names::LISTENER_REFUSALS.counter([listener, limit]);
            counter.increment(0);
            RefusalCounter(counter)
        };
        Self {
            connections: of("connections"),
            requests: of("requests"),
            bodies: of("bodies"),
            streams: of("streams"),
        }
    }

    pub(crate) fn connection_refused(&self) {
        self.connections.count();
    }

    pub(crate) fn request_refused(&self) {
        self.requests.count();
    }

    pub(crate) fn stream_refused(&self) {
        self.streams.count();
    }

    /// The counter of bodies beyond the limit.
    pub(crate) fn bodies(&self) -> RefusalCounter {
        self.bodies.clone()
    }
}

impl RefusalCounter {
    pub(crate) fn count(&self) {
        self.0.increment(1);
    }
}

impl fmt::Debug for RefusalCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RefusalCounter")
    }
}
