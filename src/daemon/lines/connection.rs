//! One connection: reads lines as far as their events find room, and writes the answers together.
//!
//! It is one task. An event whose answer needs no waiting is answered where it is read; others are polled here, and their
//! hooks run elsewhere.

use std::{collections::HashMap, io, time::Duration};

use futures_util::{
    FutureExt, StreamExt,
    future::{AbortHandle, Abortable, BoxFuture},
    stream::FuturesUnordered,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::{
    net::UnixStream,
    task::yield_now,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    answer::{DRAINING, LineAnswer, write_error},
    buffer::{LineBuffer, ReceivedLine},
    door::{Decided, LinesDoor, ROUTE},
    error,
    flight::{Answering, Flight},
    request::{LineFault, LineId, LineRequest, Unidentified},
};
use crate::daemon::{connection_timeouts::ConnectionTimeouts, error::ApiError};

/// How many bytes of answers may wait for the host. Beyond that, no more lines are read.
const MAX_UNSENT_BYTES: usize = 256 << 10;

/// How many lines are taken before their answers are sent.
const MAX_LINES_AT_ONCE: usize = 128;

/// How often the timeouts are looked at.
const TICK: Duration = Duration::from_secs(1);

/// What ends a connection from this side.
#[derive(Debug, Clone)]
pub(in crate::daemon) struct LinesEnd {
    pub(in crate::daemon) timeouts: ConnectionTimeouts,
    /// Cancelled when hosts should turn to another daemon.
    pub(in crate::daemon) draining: CancellationToken,
    /// Cancelled when the daemon shuts down.
    pub(in crate::daemon) closing: CancellationToken,
}

/// Whether lines are still taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Open,
    /// The host has closed its side, or the daemon takes no more. What is in flight is answered.
    Ended,
}

/// What happens beside the lines.
enum SideEvent {
    Draining,
    Closing,
    Tick,
}

/// Serves a connection to its end. Dropping this cancels the events in flight.
pub(in crate::daemon) async fn serve(stream: UnixStream, door: LinesDoor, end: LinesEnd) {
    // An error of the connection is ignored: its host has gone.
    _ = LinesConnection::new(stream, &door).run(&end).await;
}

/// One connection at work.
struct LinesConnection<'d> {
    stream: UnixStream,
    door: &'d LinesDoor,
    buffer: LineBuffer,
    unsent: Vec<u8>,
    /// How much of `unsent` is sent.
    sent: usize,
    input: Input,
    /// The events in flight, by their ids.
    flights: HashMap<LineId, Flight>,
    answering: FuturesUnordered<Answering<'d>>,
    most_in_flight: usize,
    next_number: u64,
    /// Since when the host has taken no answer that waits for it.
    blocked_since: Option<Instant>,
    /// Since when a line has been coming in.
    line_since: Option<Instant>,
    last_use: Instant,
}

impl<'d> LinesConnection<'d> {
    fn new(stream: UnixStream, door: &'d LinesDoor) -> Self {
        Self {
            stream,
            door,
            buffer: LineBuffer::new(door.longest_line(), door.share().bodies()),
            unsent: Vec::new(),
            sent: 0,
            input: Input::Open,
            flights: HashMap::new(),
            answering: FuturesUnordered::new(),
            most_in_flight: door.state().settings.limits.lines_in_flight.get(),
            next_number: 0,
            blocked_since: None,
            line_since: None,
            last_use: Instant::now(),
        }
    }

    async fn run(&mut self, end: &LinesEnd) -> io::Result<()> {
        let tick = end.timeouts.stalled_write.min(end.timeouts.idle).min(TICK);
        // They are polled when they are woken themselves, and not with every line.
        let mut beside: FuturesUnordered<BoxFuture<'_, SideEvent>> = FuturesUnordered::new();
        beside.push(end.draining.cancelled().map(|()| SideEvent::Draining).boxed());
        beside.push(end.closing.cancelled().map(|()| SideEvent::Closing).boxed());
        beside.push(sleep(tick).map(|()| SideEvent::Tick).boxed());
        loop {
            let has_more = self.take_lines();
            self.send()?;
            if self.is_done() {
                return Ok(());
            }
            if has_more {
                // Other connections have their turn, too.
                yield_now().await;
                continue;
            }
            if self.may_take() && self.read()? {
                continue;
            }
            tokio::select! {
                biased;
                Some(answered) = self.answering.next() => self.finish_all(answered),
                ready = self.stream.readable(), if self.may_take() => ready?,
                ready = self.stream.writable(), if !self.unsent.is_empty() => ready?,
                Some(event) = beside.next() => match event {
                    SideEvent::Draining => self.unsent.extend_from_slice(DRAINING),
                    SideEvent::Closing => self.close()?,
                    SideEvent::Tick if self.has_timed_out(&end.timeouts) => return Ok(()),
                    SideEvent::Tick => beside.push(sleep(tick).map(|()| SideEvent::Tick).boxed()),
                },
            }
        }
    }

    /// Whether there is room for the answers of more lines.
    fn may_take(&self) -> bool {
        self.input == Input::Open
            && self.answering.len() < self.most_in_flight
            && self.unsent.len() - self.sent < MAX_UNSENT_BYTES
    }

    fn is_done(&self) -> bool {
        self.input == Input::Ended && self.answering.is_empty() && self.unsent.is_empty()
    }

    /// Reads what has come. Returns whether anything has.
    fn read(&mut self) -> io::Result<bool> {
        match self.buffer.read_from(&self.stream) {
            Ok(0) => {
                self.end_input();
                Ok(true)
            }
            Ok(_) => {
                self.last_use = Instant::now();
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Takes the lines that have come, as far as there is room for their answers. Returns whether there is room, and there
    /// may be more lines.
    fn take_lines(&mut self) -> bool {
        let door = self.door;
        let mut taken = 0;
        let mut answered = 0;
        while taken < MAX_LINES_AT_ONCE && self.may_take() {
            let Some(line) = self.buffer.next_line() else { break };
            taken += 1;
            let request = match line {
                ReceivedLine::Whole(line) => LineRequest::read(line),
                ReceivedLine::Cut(beginning, cut) => {
                    LineRequest::recover(beginning, LineFault::CutOff(door.cut_off(cut)))
                }
            };
            match request {
                Ok(LineRequest::Event(id, event)) if !self.flights.contains_key(&id) => {
                    let decided = door.decide(event);
                    answered += self.begin(id, decided);
                }
                Ok(LineRequest::Event(id, _)) => self.refuse_repeated(&id),
                Ok(LineRequest::Cancel(id)) => self.cancel(&id),
                Err(Unidentified(error)) => self.refuse_line(&error),
            }
            if door.is_beyond_limit() {
                self.input = Input::Ended;
            }
        }
        if answered > 0 {
            self.door.state().meters.answered_well(ROUTE, answered);
        }
        self.line_since = match self.line_since {
            _ if !self.buffer.has_partial() || !self.may_take() => None,
            None => Some(Instant::now()),
            since => since,
        };
        taken == MAX_LINES_AT_ONCE && self.may_take()
    }

    /// Answers an event, or has it answered later. Returns how many good answers are not counted yet.
    fn begin(&mut self, id: LineId, decided: Decided<'d>) -> u64 {
        let mut deciding = match decided {
            Decided::Now(answer) => return self.answer(&id, &answer),
            Decided::Later(deciding) => deciding,
        };
        if let Some(answer) = (&mut deciding).now_or_never() {
            return self.answer(&id, &answer);
        }
        let (abort, registration) = AbortHandle::new_pair();
        let number = self.next_number;
        self.next_number += 1;
        self.flights.insert(id.clone(), Flight { number, abort });
        // Whoever is pushed is polled again, with the waker of this task.
        self.answering.push(Answering { id, number, deciding: Abortable::new(deciding, registration) });
        0
    }

    /// Writes an answer. Returns how many good answers are not counted yet.
    fn answer(&mut self, id: &LineId, answer: &LineAnswer) -> u64 {
        let is_good = answer.class() == 2;
        if !is_good {
            self.count(answer);
        }
        answer.write(id, &mut self.unsent);
        u64::from(is_good)
    }

    /// Writes an answer that has come, and those that have come with it.
    fn finish_all(&mut self, first: <Answering<'d> as Future>::Output) {
        self.finish(first);
        while let Some(Some(next)) = self.answering.next().now_or_never() {
            self.finish(next);
        }
    }

    fn finish(&mut self, (id, number, answer): <Answering<'d> as Future>::Output) {
        self.last_use = Instant::now();
        // Whoever was cancelled is answered already, and its id may be that of another event.
        if self.flights.get(&id).is_none_or(|flight| flight.number != number) {
            return;
        }
        self.flights.remove(&id);
        if let Ok(answer) = answer {
            self.count(&answer);
            answer.write(&id, &mut self.unsent);
        }
    }

    /// Cancels an event in flight. One that is answered already has its answer.
    fn cancel(&mut self, id: &LineId) {
        let Some(flight) = self.flights.remove(id) else { return };
        flight.abort.abort();
        self.refuse(Some(id), &error::cancelled());
    }

    /// An id that is in flight already: of two answers, the host could not tell which is whose.
    fn refuse_repeated(&mut self, id: &LineId) {
        if let Some(flight) = self.flights.remove(id) {
            flight.abort.abort();
        }
        self.refuse(Some(id), &error::repeated_id(id.as_str()));
        self.input = Input::Ended;
    }

    /// A line that has no id to be answered by: its host would wait forever, if the connection went on.
    fn refuse_line(&mut self, error: &ApiError) {
        self.refuse(None, error);
        self.input = Input::Ended;
    }

    fn refuse(&mut self, id: Option<&LineId>, error: &ApiError) {
        self.door.state().meters.answered(ROUTE, error.status().as_u16() / 100);
        // An error is written without failing: it has texts only.
        _ = write_error(id, error, &mut self.unsent);
    }

    fn count(&self, answer: &LineAnswer) {
        self.door.state().meters.answered(ROUTE, answer.class());
    }

    /// The host sends no more. A line without an end is not taken: it may be the beginning of another one.
    fn end_input(&mut self) {
        self.input = Input::Ended;
        if self.buffer.has_partial() {
            self.refuse_partial(error::incomplete());
        }
        if has_closed(&self.stream) {
            self.forget();
        }
    }

    /// Answers a line that does not come to its end.
    fn refuse_partial(&mut self, error: ApiError) {
        self.input = Input::Ended;
        let door = self.door;
        match LineRequest::recover(self.buffer.partial(), LineFault::CutOff(error)) {
            Ok(LineRequest::Event(id, event)) if !self.flights.contains_key(&id) => {
                let decided = door.decide(event);
                _ = self.begin(id, decided);
            }
            Ok(LineRequest::Event(id, _) | LineRequest::Cancel(id)) => self.refuse_repeated(&id),
            Err(Unidentified(error)) => self.refuse_line(&error),
        }
    }

    /// Nobody reads the answers any more: the events in flight are cancelled.
    fn forget(&mut self) {
        self.flights.clear();
        self.answering.clear();
        self.unsent.clear();
        self.sent = 0;
    }

    /// The daemon shuts down: what has come is answered, and no more is taken.
    fn close(&mut self) -> io::Result<()> {
        while self.may_take() && self.read()? {
            while self.take_lines() {}
        }
        self.input = Input::Ended;
        Ok(())
    }

    /// Sends as much as the host takes.
    fn send(&mut self) -> io::Result<()> {
        while self.sent < self.unsent.len() {
            match self.stream.try_write(&self.unsent[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => {
                    self.sent += sent;
                    self.blocked_since = None;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked_since.get_or_insert_with(Instant::now);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.unsent.clear();
        self.sent = 0;
        if self.unsent.capacity() > MAX_UNSENT_BYTES {
            self.unsent = Vec::new();
        }
        Ok(())
    }

    /// Whether the connection ends because of what its host does not do.
    fn has_timed_out(&mut self, timeouts: &ConnectionTimeouts) -> bool {
        let over = |since: Option<Instant>, limit| since.is_some_and(|since| since.elapsed() >= limit);
        if over(self.blocked_since, timeouts.stalled_write) {
            return true;
        }
        // A host that is not read from is not noticed otherwise.
        if !self.may_take() && has_closed(&self.stream) {
            return true;
        }
        if over(
            self.line_since.take_if(|since| since.elapsed() >= timeouts.stalled_write),
            timeouts.stalled_write,
        ) {
            self.refuse_partial(error::too_slow(timeouts.stalled_write));
            return false;
        }
        let is_idle = self.answering.is_empty() && self.unsent.is_empty() && self.line_since.is_none();
        is_idle && self.last_use.elapsed() >= timeouts.idle
    }
}

/// Whether the host has closed its connection, and not only its side of it.
fn has_closed(stream: &UnixStream) -> bool {
    let mut look = [PollFd::new(stream, PollFlags::empty())];
    let looked = poll(&mut look, Some(&Timespec::default()));
    looked.is_ok() && look[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}
