//! The places of a pool: who may have one, who has one, and who waits. The last ones are kept for interceptors, so that a
//! host that needs a verdict never waits for hooks that nobody waits for.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;

use crate::telemetry::Meters;

/// Which jobs go first, in this order: those for events of known senders, and of these interceptors. What is delivered
/// again goes last: it has waited already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum JobClass {
    /// A host waits for it before it goes on.
    Interceptor,
    /// No host waits for its verdict: a hook of a lifecycle event, or a detached one.
    Lifecycle,
    /// An interceptor for an event of an anonymous sender.
    AnonymousInterceptor,
    /// A lifecycle hook for one, or for an event that is delivered again.
    LastLifecycle,
}

impl JobClass {
    /// All classes, in their order.
    pub(super) const ALL: [Self; 4] =
        [Self::Interceptor, Self::Lifecycle, Self::AnonymousInterceptor, Self::LastLifecycle];

    /// The class of a hook for an event of an anonymous sender or of the outbox, which go last, or of anybody else.
    pub(crate) fn of(is_interceptor: bool, goes_last: bool) -> Self {
        match (is_interceptor, goes_last) {
            (true, false) => Self::Interceptor,
            (false, false) => Self::Lifecycle,
            (true, true) => Self::AnonymousInterceptor,
            (false, true) => Self::LastLifecycle,
        }
    }

    /// Whether a host waits for its verdict.
    pub(super) fn is_interceptor(self) -> bool {
        matches!(self, Self::Interceptor | Self::AnonymousInterceptor)
    }

    /// Its place in the order.
    pub(super) fn rank(self) -> usize {
        match self {
            Self::Interceptor => 0,
            Self::Lifecycle => 1,
            Self::AnonymousInterceptor => 2,
            Self::LastLifecycle => 3,
        }
    }
}

/// How many invocations may run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlaceShares {
    interceptors: usize,
    /// Those of lifecycle events, and of detached hooks.
    lifecycle: usize,
    total: usize,
}

/// How many of each class run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct HeldPlaces {
    interceptors: usize,
    lifecycle: usize,
}

impl PlaceShares {
    /// Those of a pool: lifecycle hooks get three quarters of its places, and leave one at least. A single place cannot be
    /// shared, so there is a second: one for each class.
    pub(super) fn of_pool(concurrency: usize) -> Self {
        let total = concurrency.max(2);
        Self { interceptors: concurrency, lifecycle: total - kept(concurrency), total }
    }

    /// Those of one hook's limit, which is never exceeded. If the hook is an interceptor for some events, its other
    /// invocations leave places as in a pool, as far as there is more than one.
    pub(super) fn of_hook(most: usize, is_interceptor: bool) -> Self {
        let lifecycle = if is_interceptor { most.saturating_sub(kept(most)).max(1) } else { most };
        Self { interceptors: most, lifecycle, total: most }
    }

    /// How many there are in all.
    pub(super) fn total(self) -> usize {
        self.total
    }

    /// Whether an invocation of a class may run beside those that run.
    pub(super) fn has_room(self, held: HeldPlaces, class: JobClass) -> bool {
        let HeldPlaces { interceptors, lifecycle } = held;
        let is_below_share = if class.is_interceptor() {
            interceptors < self.interceptors
        } else {
            lifecycle < self.lifecycle
        };
        is_below_share && held.total() < self.total
    }
}

/// How many places lifecycle hooks leave.
fn kept(places: usize) -> usize {
    (places / 4).max(1)
}

impl HeldPlaces {
    pub(super) fn total(self) -> usize {
        self.interceptors + self.lifecycle
    }

    pub(super) fn add(&mut self, class: JobClass) {
        *self.of(class) += 1;
    }

    pub(super) fn remove(&mut self, class: JobClass) {
        *self.of(class) -= 1;
    }

    fn of(&mut self, class: JobClass) -> &mut usize {
        if class.is_interceptor() { &mut self.interceptors } else { &mut self.lifecycle }
    }
}

/// How many hooks of a pool run and wait, and where what is shed is counted.
#[derive(Debug)]
pub(super) struct PoolLoad {
    shares: PlaceShares,
    held: Mutex<HeldPlaces>,
    pub(super) waiting: AtomicUsize,
    /// How many jobs its factory has that have no place yet.
    placeless: AtomicUsize,
    pub(super) meters: Arc<Meters>,
}

impl PoolLoad {
    pub(super) fn new(shares: PlaceShares, meters: &Arc<Meters>) -> Self {
        Self {
            shares,
            held: Mutex::default(),
            waiting: AtomicUsize::new(0),
            placeless: AtomicUsize::new(0),
            meters: Arc::clone(meters),
        }
    }

    /// How many run.
    pub(super) fn held(&self) -> HeldPlaces {
        *self.held.lock()
    }

    /// Whether another job of a class may run.
    pub(super) fn has_room(&self, class: JobClass) -> bool {
        self.shares.has_room(self.held(), class)
    }

    /// Whether some job waits for a place, or will as soon as the factory has read it.
    pub(super) fn has_placeless(&self) -> bool {
        self.placeless.load(Ordering::SeqCst) > 0
    }
}

/// RAII guard: a job that the factory has and that has no place yet.
#[derive(Debug)]
pub(crate) struct Placeless(Arc<PoolLoad>);

impl Placeless {
    pub(super) fn enter(load: &Arc<PoolLoad>) -> Self {
        load.placeless.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(load))
    }
}

impl Drop for Placeless {
    fn drop(&mut self) {
        self.0.placeless.fetch_sub(1, Ordering::SeqCst);
    }
}

/// RAII guard: the place of one job, taken when the job starts.
#[derive(Debug)]
pub(crate) struct Place {
    load: Arc<PoolLoad>,
    class: JobClass,
}

impl Place {
    /// A place for a job of a class, if there is room for one.
    pub(super) fn try_take(load: &Arc<PoolLoad>, class: JobClass) -> Option<Self> {
        let mut held = load.held.lock();
        load.shares.has_room(*held, class).then(|| {
            held.add(class);
            Self { load: Arc::clone(load), class }
        })
    }

    /// Whether it is a place for this class.
    pub(super) fn is_for(&self, class: JobClass) -> bool {
        self.class == class
    }

    /// Makes it a place of a hook that nobody waits for, which leaves those of interceptors. Returns false if too many have
    /// one.
    pub(super) fn leave_interceptors(&mut self) -> bool {
        if !self.class.is_interceptor() {
            return true;
        }
        let mut held = self.load.held.lock();
        let mut others = *held;
        others.remove(self.class);
        if !self.load.shares.has_room(others, JobClass::Lifecycle) {
            return false;
        }
        others.add(JobClass::Lifecycle);
        *held = others;
        self.class = JobClass::Lifecycle;
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.load.held.lock().remove(self.class);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most lifecycle hooks that run beside so many interceptors.
    fn room_beside(shares: PlaceShares, interceptors: usize) -> usize {
        let mut held = HeldPlaces { interceptors, lifecycle: 0 };
        while shares.has_room(held, JobClass::Lifecycle) {
            held.add(JobClass::Lifecycle);
        }
        held.lifecycle
    }

    #[test]
    fn lifecycle_hooks_leave_a_place_for_an_interceptor_in_a_pool_of_any_size() {
        for (places, most) in [(1, 1), (2, 1), (3, 2), (4, 3), (8, 6), (64, 48)] {
            let shares = PlaceShares::of_pool(places);
            let lifecycle = room_beside(shares, 0);
            assert_eq!(lifecycle, most, "of {places}");
            for class in [JobClass::Interceptor, JobClass::AnonymousInterceptor] {
                assert!(shares.has_room(HeldPlaces { interceptors: 0, lifecycle }, class), "{places}");
                let full = HeldPlaces { interceptors: places, lifecycle: 0 };
                assert!(!shares.has_room(full, class), "{places} interceptors are the most");
            }
            assert_eq!(shares.total(), places.max(2));
        }
        assert_eq!(room_beside(PlaceShares::of_pool(4), 3), 1);
        assert_eq!(room_beside(PlaceShares::of_pool(4), 4), 0);
        assert_eq!(room_beside(PlaceShares::of_pool(1), 1), 1);
    }

    #[test]
    fn the_limit_of_a_hook_is_never_exceeded() {
        for (most, shared) in [(0, 0), (1, 1), (2, 1), (4, 3), (8, 6)] {
            assert_eq!(room_beside(PlaceShares::of_hook(most, true), 0), shared, "of {most}");
            assert_eq!(room_beside(PlaceShares::of_hook(most, false), 0), most, "it never decides");
            assert_eq!(room_beside(PlaceShares::of_hook(most, true), most), 0);
        }
    }
}
