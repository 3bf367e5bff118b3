//! The life of one worker, from its start to its end, as one loop. Owns the process, the open events and what
//! becomes of them; refuses to decide whether another worker is started. Whatever ends the loop, also its being
//! dropped, kills the worker's process group.

use std::{
    collections::HashMap,
    future::pending,
    io,
    ops::ControlFlow::{self, Break, Continue},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until, timeout},
};

use super::{
    line::{self, Said},
    link::{Answer, Link, Message, Phase, Place, Request, Seats},
    pipes::{Lines, Log, Next, Requests, Rest},
    terms::{Ending, Terms},
};
use crate::{
    handler::command::{
        group::{ExitWatch, Group},
        spawn::SpawnError,
    },
    model::{Ended, Failure},
    telemetry::{WorkerState, WorkerThere},
};

/// How much of an error that a worker reports is repeated, in bytes.
const LONGEST_ERROR: usize = 512;

/// How often a worker's memory is looked at.
const MEMORY_LOOK: Duration = Duration::from_secs(1);

/// The part of its share at whose beginning a worker's successor is started, so that nobody waits for it: a tenth.
const LAST_PART: usize = 10;

/// An event that the worker has been asked about.
#[derive(Debug)]
struct Open {
    deadline: Instant,
    /// `None` once nobody waits any more. The worker has to answer even then, and until it has it keeps its place.
    reply: Option<oneshot::Sender<Answer>>,
    _place: Place,
}

/// A worker that runs.
struct Life {
    terms: Terms,
    group: Group,
    exit: ExitWatch,
    requests: Requests,
    lines: Lines,
    log: Log,
    messages: mpsc::UnboundedReceiver<Message>,
    phase: watch::Sender<Phase>,
    seats: Arc<Seats>,
    /// Those of the whole fleet.
    places: Arc<Seats>,
    open: HashMap<u64, Open>,
    served: usize,
    born: Instant,
    /// When it last had an event, or was asked whether it is there and said so.
    heard: Instant,
    /// When it last had an event.
    used: Instant,
    pinged: Option<Instant>,
    memory_seen: Option<Instant>,
    there: WorkerThere,
}

/// What the loop waits for.
enum Wake {
    Wrote(Next),
    Exited,
    Clock,
    Told(Option<Message>),
}

/// Starts a worker of a fleet. When it ends, `note` is told why and how old it got, before anybody else is.
pub(super) fn start(
    terms: Terms,
    places: Arc<Seats>,
    note: impl FnOnce(&Ending, Duration) + Send + 'static,
) -> Result<Link, SpawnError> {
    let begun = Instant::now();
    let (group, pipes) = Group::start(&terms.program)?;
    terms.meters.processes.spawned(begun.elapsed());
    let opened = || -> io::Result<_> {
        Ok((
            Requests::open(pipes.stdin)?,
            Lines::open(pipes.stdout, terms.limits.stdout)?,
            Log::open(pipes.stderr, terms.limits.stderr)?,
            ExitWatch::on(&group)?,
        ))
    };
    let (requests, lines, log, exit) = opened().map_err(|error| SpawnError::of(&terms.program, error))?;
    let (sender, messages) = mpsc::unbounded_channel();
    let (phase, seen) = watch::channel(Phase::Starting);
    let seats = Arc::new(Seats::of(1));
    let life = Life {
        group,
        requests,
        lines,
        log,
        exit,
        messages,
        phase,
        seats: Arc::clone(&seats),
        places,
        open: HashMap::new(),
        served: 0,
        born: begun,
        heard: begun,
        used: begun,
        pinged: None,
        memory_seen: None,
        there: WorkerThere::starting(&terms.meters.workers),
        terms,
    };
    let life = tokio::spawn(life.run(note)).abort_handle();
    Ok(Link { messages: sender, phase: seen, seats, life })
}

impl Life {
    /// Serves until something ends it.
    async fn run(mut self, note: impl FnOnce(&Ending, Duration)) {
        let running = self.terms.meters.processes.running();
        let ending = loop {
            let clock = self.next_look();
            let wake = tokio::select! {
                biased;
                next = self.lines.next() => Wake::Wrote(next),
                () = self.exit.exited() => Wake::Exited,
                () = at(clock) => Wake::Clock,
                message = self.messages.recv() => Wake::Told(message),
                never = self.requests.flush() => match never {},
                never = self.log.pass_on(&self.terms) => match never {},
            };
            let flow = match wake {
                Wake::Wrote(next) => self.wrote(next),
                Wake::Exited => Break(self.last_words().await),
                Wake::Clock => self.look(Instant::now()),
                Wake::Told(Some(message)) => self.told(message),
                Wake::Told(None) if self.open.is_empty() => Break(Ending::Retired),
                // Waits for what is open; nothing more comes.
                Wake::Told(None) => self.finish_open().await,
            };
            if let Break(ending) = flow {
                break ending;
            }
        };
        // Whoever finds this worker gone or is told next must not start another one too soon.
        note(&ending, self.born.elapsed());
        self.messages.close();
        self.conclude(&ending);
        if ending == Ending::Retired {
            self.requests.close();
            // One that stays is killed.
            drop(timeout(self.terms.patience.grace, self.exit.exited()).await);
        }
        drop(running);
    }

    fn is_ready(&self) -> bool {
        *self.phase.borrow() != Phase::Starting
    }

    /// Takes no more events and serves those that are open. Callers whose events have not been read yet are told
    /// that the worker never got them.
    async fn finish_open(&mut self) -> ControlFlow<Ending> {
        while !self.open.is_empty() {
            let clock = self.next_look();
            let flow = tokio::select! {
                biased;
                next = self.lines.next() => self.wrote(next),
                () = self.exit.exited() => Break(self.last_words().await),
                () = at(clock) => self.look(Instant::now()),
                never = self.requests.flush() => match never {},
                never = self.log.pass_on(&self.terms) => match never {},
            };
            if let Break(ending) = flow {
                return Break(ending);
            }
        }
        Break(Ending::Retired)
    }

    /// When the clock has to be looked at next.
    fn next_look(&self) -> Option<Instant> {
        let patience = &self.terms.patience;
        if !self.is_ready() {
            return self.born.checked_add(patience.hello);
        }
        if let Some(first) = self.open.values().map(|open| open.deadline).min() {
            return Some(first);
        }
        let pong = match self.pinged {
            Some(pinged) => pinged.checked_add(patience.pong),
            None => self.heard.checked_add(patience.ping),
        };
        let idle = self.used.checked_add(self.terms.bounds.max_idle);
        let age = self.terms.bounds.max_age.and_then(|age| self.born.checked_add(age));
        [pong, idle, age].into_iter().flatten().min()
    }

    fn look(&mut self, now: Instant) -> ControlFlow<Ending> {
        let patience = self.terms.patience;
        if !self.is_ready() {
            return Break(Ending::NoHello(format!("it said no hello within {:?}", patience.hello)));
        }
        if self.open.values().any(|open| open.deadline <= now) {
            return Break(Ending::Late);
        }
        if !self.open.is_empty() {
            return Continue(());
        }
        let passed = |since: Instant, length| now.saturating_duration_since(since) >= length;
        match self.pinged {
            Some(pinged) if passed(pinged, patience.pong) => {
                return Break(Ending::Died("it does not answer a ping".to_owned()));
            }
            None if passed(self.heard, patience.ping) => {
                self.requests.buffer().extend_from_slice(line::PING);
                self.pinged = Some(now);
            }
            _ => {}
        }
        let bounds = &self.terms.bounds;
        if passed(self.used, bounds.max_idle) || bounds.max_age.is_some_and(|age| passed(self.born, age)) {
            return Break(Ending::Retired);
        }
        Continue(())
    }

    fn told(&mut self, message: Message) -> ControlFlow<Ending> {
        match message {
            Message::Event(request) => self.ask(request),
            Message::Cancel(id) => {
                if let Some(open) = self.open.get_mut(&id) {
                    open.reply = None;
                    line::write_cancel(self.requests.buffer(), id);
                }
            }
        }
        Continue(())
    }

    fn ask(&mut self, Request { question, deadline, reply, place }: Request) {
        let now = Instant::now();
        let left = deadline.saturating_duration_since(now);
        line::write_request(self.requests.buffer(), &question, left.as_millis());
        self.log.renew();
        (self.heard, self.used) = (now, now);
        self.served += 1;
        let share = self.terms.bounds.max_requests.get();
        if self.served == share - share / LAST_PART {
            self.phase.send_replace(Phase::Waning);
        }
        if self.served >= share {
            self.messages.close();
        }
        self.there.enter(WorkerState::Busy);
        self.open.insert(question.id, Open { deadline, reply: Some(reply), _place: place });
    }

    fn wrote(&mut self, next: Next) -> ControlFlow<Ending> {
        let line = match next {
            Next::Line(line) => line,
            Next::TooLong => {
                return Break(
                    self.broken(format!("a line is longer than {} bytes", self.terms.limits.stdout)),
                );
            }
            Next::Ended(rest) => return Break(self.ended(rest)),
        };
        let said = match line::read(&line) {
            Ok(said) => said,
            Err(why) => return Break(self.broken(why)),
        };
        match said {
            Said::Hello { version: line::VERSION, multiplex } if !self.is_ready() => self.greeted(multiplex),
            Said::Hello { version, .. } if !self.is_ready() => {
                return Break(self.broken(format!("it speaks version {version} of the protocol")));
            }
            Said::Pong if self.pinged.take().is_some() => self.heard = Instant::now(),
            Said::Reply { id, result } if self.is_ready() => {
                let Some(open) = self.open.remove(&id) else {
                    return Break(self.broken("a reply is to an id that is not open".to_owned()));
                };
                let answer = result
                    .map(|output| line.slice_ref(output.get().as_bytes()))
                    .map_err(|error| reported(&error));
                self.answered(open, answer);
            }
            Said::Hello { .. } | Said::Pong | Said::Reply { .. } => {
                return Break(self.broken("a message was not asked for".to_owned()));
            }
        }
        Continue(())
    }

    fn greeted(&mut self, multiplex: bool) {
        if multiplex {
            self.seats.widen();
            self.places.widen();
        }
        self.heard = Instant::now();
        self.there.enter(WorkerState::Idle);
        self.phase.send_replace(Phase::Ready);
    }

    fn answered(&mut self, open: Open, answer: Answer) {
        let now = Instant::now();
        (self.heard, self.used) = (now, now);
        if self.open.is_empty() {
            self.there.enter(WorkerState::Idle);
        }
        if let Some(reply) = open.reply {
            // A send fails only if nobody waits any more.
            drop(reply.send(answer));
        }
        let bounds = &self.terms.bounds;
        if bounds.max_age.is_some_and(|age| now.saturating_duration_since(self.born) >= age) {
            self.messages.close();
        }
        if let Some(most) = bounds.max_rss_mib
            && self.memory_seen.is_none_or(|seen| seen.elapsed() >= MEMORY_LOOK)
        {
            self.memory_seen = Some(now);
            if resident_mib(&self.group).is_some_and(|mib| mib > most.get()) {
                self.messages.close();
            }
        }
    }

    /// What it means that a worker wrote something wrong.
    fn broken(&self, why: String) -> Ending {
        if self.is_ready() { Ending::Protocol(why) } else { Ending::NoHello(why) }
    }

    /// What it means that a worker writes nothing more.
    fn ended(&self, rest: Rest) -> Ending {
        match rest {
            Rest::HalfLine => self.broken("it ended within a line".to_owned()),
            Rest::Nothing if !self.is_ready() => Ending::NoHello("it ended without a hello".to_owned()),
            Rest::Nothing => Ending::Died("it exited or closed its standard output".to_owned()),
        }
    }

    /// Takes what an exited worker wrote before; somebody else may still hold its pipe.
    async fn last_words(&mut self) -> Ending {
        let last = Instant::now() + self.terms.patience.drain;
        while let Ok(next) = tokio::time::timeout_at(last, self.lines.next()).await {
            if let Break(ending) = self.wrote(next) {
                return ending;
            }
        }
        self.ended(self.lines.rest())
    }

    /// Tells everybody who still waits.
    fn conclude(&mut self, ending: &Ending) {
        let now = Instant::now();
        for open in std::mem::take(&mut self.open).into_values() {
            if let Some(reply) = open.reply {
                drop(reply.send(Err(ending.failure(open.deadline <= now))));
            }
        }
    }
}

/// A failure that the worker itself reports.
fn reported(error: &str) -> Failure {
    let end = error.floor_char_boundary(LONGEST_ERROR);
    Failure::new(Ended::Failed, format!("the worker reports: {}", &error[..end]))
}

async fn at(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => pending().await,
    }
}

/// The memory that the leader of a group occupies.
fn resident_mib(group: &Group) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", group.id().as_raw_nonzero())).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? / 1024)
}
