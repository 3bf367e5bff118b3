//! The workers of one hook in one workspace. Owns who serves an event, how many workers there are, when another
//! is started after one failed, and when workers are given up; refuses to speak with a process itself.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    greeting, life,
    line::Question,
    link::{Link, Phase, Place, Seats},
    terms::{Ending, Errors, FleetMeters, Patience, Terms},
};
use crate::{
    handler::{
        Invocation,
        command::{CommandLimits, spawn::Program, standing::Ready},
    },
    model::{Ended, Failure, RawReply, WorkerBounds},
};

/// How long no worker is started after one failed; doubled with each more that fails.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest such time.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A worker that lived so long ended by itself, not because it cannot work.
const LONG_LIFE: Duration = Duration::from_secs(30);

/// How many workers an event is brought to that end before they see it.
const MOST_TRIES: usize = 3;

/// What stands for a deadline beyond what the clock can count.
const FAR: Duration = Duration::from_hours(24 * 365);

/// What became of an event that was brought to a fleet.
#[derive(Debug)]
pub(in crate::handler::command) enum Served {
    /// A worker concluded it.
    Concluded(Result<RawReply, Failure>),
    /// No worker is to be had, and why not, if that is to be told; none has seen the event.
    NoWorker(Option<String>),
}

/// The workers of one hook.
#[derive(Debug)]
pub(in crate::handler::command) struct Fleet {
    terms: Terms,
    places: Arc<Seats>,
    links: Mutex<Vec<Arc<Link>>>,
    health: Arc<Mutex<Health>>,
    next_id: AtomicU64,
}

/// Who can take an event.
enum Found {
    Seat(Arc<Link>, OwnedSemaphorePermit),
    /// Nobody yet.
    Starting(Arc<Link>),
    Nothing,
}

/// How a fleet's workers have fared.
#[derive(Debug, Default)]
struct Health {
    /// How many failed one after the other.
    failed: u32,
    /// Before this no worker is started.
    pause: Option<Instant>,
    /// Why no worker is started any more.
    given_up: Option<Arc<str>>,
}

impl Fleet {
    pub(in crate::handler::command) fn new(
        hook: &str,
        errors: Errors,
        program: Program,
        bounds: WorkerBounds,
        limits: CommandLimits,
        meters: FleetMeters,
    ) -> Self {
        let (program, patience) = (Arc::new(program), Patience::default());
        Self::with(Terms { hook: hook.into(), errors, program, bounds, limits, patience, meters })
    }

    fn with(terms: Terms) -> Self {
        Self {
            places: Arc::new(Seats::of(terms.bounds.workers.get())),
            links: Mutex::default(),
            health: Arc::default(),
            next_id: AtomicU64::new(0),
            terms,
        }
    }

    /// Whether its program says hello; see [`greeting::hear`].
    pub(in crate::handler::command) async fn greet(self) -> Result<(), String> {
        greeting::hear(self.terms).await
    }

    /// Whether it starts no more workers.
    fn has_given_up(&self) -> bool {
        self.health().given_up.is_some()
    }

    /// Why there is no worker, unless one has just done its share.
    fn trouble(&self) -> Option<String> {
        let health = self.health();
        if let Some(why) = &health.given_up {
            return Some(format!("no worker: {why}; until the next reload each event gets a process"));
        }
        if health.pause.is_some_and(|until| until > Instant::now()) {
            return Some("no worker: one has failed, and there is a pause before the next".to_owned());
        }
        drop(health);
        let starting = |link: &Arc<Link>| !link.is_closed() && link.is_in(Phase::Starting);
        let starts = self.links().iter().any(starting);
        starts.then(|| "no worker: it has not said hello yet".to_owned())
    }

    /// Brings an event to a worker. Dropping the future tells the worker that nobody waits.
    pub(in crate::handler::command) async fn serve(
        &self,
        invocation: &Invocation,
        cancel: &CancellationToken,
    ) -> Served {
        let now = Instant::now();
        let deadline = now.checked_add(invocation.timeout).unwrap_or(now + FAR);
        for _ in 0..MOST_TRIES {
            let seated = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    let failure = Failure::cancelled();
                    return Served::Concluded(Err(failure));
                }
                seated = self.seat(invocation.timeout, deadline) => seated,
            };
            let (link, place) = match seated {
                Ok(Some(seated)) => seated,
                Ok(None) => break,
                Err(failure) => return Served::Concluded(Err(failure)),
            };
            let question = Question {
                id: self.next_id.fetch_add(1, Ordering::Relaxed),
                envelope: invocation.envelope.clone(),
                trace: invocation.event.trace,
            };
            if let Some(answer) = link.ask(question, deadline, place, cancel).await {
                return Served::Concluded(answer.map(|output| RawReply::Command {
                    exit_code: 0,
                    stdout: output,
                    stderr: bytes::Bytes::new(),
                    truncated: false,
                }));
            }
            // It had done its share before it saw the event; a process for each that comes at that moment would
            // keep the machine from starting the next worker.
        }
        Served::NoWorker(self.trouble())
    }

    /// A worker that can be asked now, if one is to be had.
    ///
    /// Returns a failure if all were busy until the deadline.
    async fn seat(
        &self,
        timeout: Duration,
        deadline: Instant,
    ) -> Result<Option<(Arc<Link>, Place)>, Failure> {
        if self.has_given_up() {
            return Ok(None);
        }
        let Ok(place) = timeout_at(deadline, self.places.take()).await else {
            return Err(Failure::new(Ended::TimedOut, "the hook's workers were busy with other events"));
        };
        let Some(place) = place else { return Ok(None) };
        // A hook that is no worker still has to run in what is left of its time.
        let patience = self.terms.patience.hello.min(timeout / 2);
        let seated = tokio::time::timeout(patience, self.ready_seat()).await;
        Ok(seated.ok().flatten().map(|(link, seat)| (link, (place, seat))))
    }

    /// A free seat of a worker that has said hello, which is waited for.
    async fn ready_seat(&self) -> Option<(Arc<Link>, OwnedSemaphorePermit)> {
        loop {
            match self.find() {
                Found::Seat(link, seat) => return link.is_ready().await.then_some((link, seat)),
                // Until its hello nobody knows how many events it takes.
                Found::Starting(link) => link.is_ready().await.then_some(())?,
                Found::Nothing => return None,
            }
        }
    }

    /// Who can take an event now: the worker with the fewest. Starts another while there may be one more and all have
    /// something to do, or if one has nearly done its share.
    fn find(&self) -> Found {
        let mut links = self.links();
        links.retain(|link| !link.is_closed());
        let staying = links.iter().filter(|link| !link.is_in(Phase::Waning)).count();
        links.sort_by_key(|link| (link.is_in(Phase::Starting), link.load()));
        let is_wanted = staying < links.len() || links.first().is_none_or(|link| link.load() > 0);
        let free = links.iter().find_map(|link| Some((Arc::clone(link), link.take_seat()?)));
        if is_wanted && staying < self.terms.bounds.workers.get() && self.may_start() {
            links.extend(self.start().map(Arc::new));
        }
        if let Some((link, seat)) = free {
            return Found::Seat(link, seat);
        }
        let Some(newest) = links.last() else { return Found::Nothing };
        match newest.take_seat() {
            Some(seat) => Found::Seat(Arc::clone(newest), seat),
            None if newest.is_in(Phase::Starting) => Found::Starting(Arc::clone(newest)),
            None => Found::Nothing,
        }
    }

    fn may_start(&self) -> bool {
        let health = self.health();
        health.given_up.is_none() && health.pause.is_none_or(|until| until <= Instant::now())
    }

    fn start(&self) -> Option<Link> {
        let (health, hook) = (Arc::clone(&self.health), Arc::clone(&self.terms.hook));
        let workers = Arc::clone(&self.terms.meters.workers);
        let note = move |ending: &Ending, age| {
            if ending.is_failure() {
                workers.failed();
            }
            lock(&health).note(&hook, ending, age);
        };
        life::start(self.terms.clone(), Arc::clone(&self.places), note)
            .inspect_err(|error| {
                self.terms.meters.workers.failed();
                self.health().note(&self.terms.hook, &Ending::Died(error.to_string()), Duration::ZERO);
            })
            .ok()
    }

    fn links(&self) -> MutexGuard<'_, Vec<Arc<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        lock(&self.health)
    }
}

impl Ready for Fleet {
    fn is_spent(&self) -> bool {
        self.has_given_up()
    }

    fn stop(&self) {
        self.health().given_up = Some("hookyard is stopping".into());
        for link in std::mem::take(&mut *self.links()) {
            link.life.abort();
        }
    }
}

fn lock(health: &Mutex<Health>) -> MutexGuard<'_, Health> {
    health.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Health {
    /// Draws the consequences of a worker's end.
    fn note(&mut self, hook: &str, ending: &Ending, age: Duration) {
        let why = match ending {
            Ending::Retired => return,
            Ending::NoHello(why) => {
                if self.given_up.replace(why.as_str().into()).is_none() {
                    tracing::warn!(hook, why, "no worker: until the next reload each event gets a process");
                }
                return;
            }
            Ending::Protocol(why) | Ending::Died(why) => why.as_str(),
            Ending::Late => "it was late with an event",
        };
        self.failed = if age >= LONG_LIFE { 1 } else { self.failed.saturating_add(1) };
        let pause = FIRST_PAUSE.saturating_mul(1 << (self.failed - 1).min(10)).min(LONGEST_PAUSE);
        self.pause = Some(Instant::now() + pause);
        tracing::warn!(hook, why, ?pause, "a worker ended; another may be started after the pause");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{ProcessMeters, WorkerMeters};

    /// A fleet of a shell script that is pinged after so long without events, and has so long to answer.
    fn fleet(script: &str, ping: Duration, answer: Duration) -> Fleet {
        let program = Program {
            path: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            cwd: "/".into(),
            environment: vec![],
        };
        Fleet::with(Terms {
            hook: "hook".into(),
            errors: Errors::Shown,
            program: Arc::new(program),
            bounds: WorkerBounds::default(),
            limits: CommandLimits { stdout: 1 << 20, stderr: 1 << 10 },
            patience: Patience { ping, pong: answer, ..Patience::default() },
            meters: FleetMeters {
                workers: Arc::new(WorkerMeters::unread()),
                processes: Arc::new(ProcessMeters::resolve()),
            },
        })
    }

    /// Starts a worker, gives it no event and waits for its end.
    async fn outlive(fleet: &Fleet) {
        let minute = Duration::from_mins(1);
        let (link, place) = fleet.seat(minute, Instant::now() + minute).await.unwrap().unwrap();
        drop(place);
        tokio::time::timeout(minute, link.messages.closed()).await.unwrap();
    }

    #[tokio::test]
    async fn a_worker_that_does_not_answer_a_ping_is_given_up() {
        let script = r#"echo '{"hookyard":1}'; while read -r line; do :; done"#;
        let fleet = fleet(script, Duration::from_millis(20), Duration::from_millis(20));
        outlive(&fleet).await;
        assert!(fleet.health().pause.is_some() && !fleet.has_given_up());
    }

    #[tokio::test]
    async fn a_worker_that_answers_pings_lives_on() {
        let script =
            r#"echo '{"hookyard":1}'; for number in 1 2 3; do read -r line; echo '{"pong":1}'; done; exit"#;
        let fleet = fleet(script, Duration::from_millis(20), Duration::from_mins(1));
        // Only the third ping lets it end.
        outlive(&fleet).await;
        assert!(!fleet.has_given_up());
    }

    #[tokio::test(start_paused = true)]
    async fn the_pause_doubles_up_to_its_longest_and_starts_over_after_a_long_life() {
        let mut health = Health::default();
        let mut pause = |age| {
            health.note("hook", &Ending::Late, age);
            health.pause.unwrap() - Instant::now()
        };
        let pauses: Vec<_> = (0..9).map(|_| pause(Duration::ZERO).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(pause(LONG_LIFE), FIRST_PAUSE);
    }
}
