//! The places in which hooks work: pools, and the limits of single hooks.

use std::collections::{BTreeMap, VecDeque};

use super::{Model, Timer, course::Ended};
use crate::{
    observed::{Work, WorkEnd},
    schedule::{Bounds, Form, Rule},
    script::{Ending, Script},
};

/// One hook that works, or waits to work, on one event.
#[derive(Debug)]
pub(super) struct Job<'a> {
    number: usize,
    pub(super) course: usize,
    pub(super) step: usize,
    pub(super) state: JobState,
    rule: &'a Rule,
    event: usize,
    script: Script,
    input: String,
    /// Since when it works, or its latest question is asked.
    since: u64,
    began: u64,
    /// The limit of its own in which it has a place.
    limit: Option<LimitKey>,
    was_shed: bool,
    /// Whether its first answer could not be read.
    has_asked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobState {
    New,
    WaitsForLimit,
    WaitsForPool,
    Works,
    Over,
}

/// The workspace and the name of a hook.
type LimitKey = (usize, String);

/// All places.
#[derive(Debug)]
pub(super) struct Places {
    native: Pool,
    prompt: Pool,
    limits: BTreeMap<LimitKey, Pool>,
}

/// Places, and who waits for one.
#[derive(Debug)]
struct Pool {
    most: Share,
    busy: Share,
    /// Interceptors go first.
    interceptors: VecDeque<Waiting>,
    others: VecDeque<Waiting>,
    /// How many may wait, if not any number.
    queue: Option<usize>,
    /// Which events' hooks came to it at the present moment.
    arrivals: (u64, Vec<usize>),
    /// When a job had and gave back a place within one moment.
    flash: Option<u64>,
    /// When a job that only watches, and had waited, was given a place.
    others_served: Option<u64>,
    /// When a job that had waited was given a place.
    waiting_served: Option<u64>,
}

/// A job that waits for a place.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    job: usize,
    since: u64,
}

/// Numbers of places.
#[derive(Debug, Clone, Copy)]
struct Share {
    all: usize,
    interceptors: usize,
    others: usize,
}

impl Share {
    /// What may work at once in a pool of this size. Interceptors may have all places; others leave a quarter, and one at
    /// least. Of one place there are two: one for each.
    fn of_pool(places: usize) -> Self {
        match places {
            1 => Self { all: 2, interceptors: 1, others: 1 },
            2 | 3 => Self { all: places, interceptors: places, others: places - 1 },
            _ => Self { all: places, interceptors: places, others: places - places / 4 },
        }
    }

    /// What a hook with this limit may do at once. Others leave places only to the same hook's interceptors.
    fn of_hook(rule: &Rule, most: usize) -> Self {
        let of_both = rule.kinds.iter().any(|kind| kind.is_interceptor());
        if most == 1 || !of_both {
            return Self { all: most, interceptors: most, others: most };
        }
        Self::of_pool(most)
    }

    fn count(&mut self, intercepts: bool) -> &mut usize {
        if intercepts { &mut self.interceptors } else { &mut self.others }
    }
}

impl Pool {
    fn new(most: Share, queue: Option<usize>) -> Self {
        let (interceptors, others) = (VecDeque::new(), VecDeque::new());
        let (arrivals, flash) = ((0, Vec::new()), None);
        let (others_served, waiting_served) = (None, None);
        let busy = Share { all: 0, interceptors: 0, others: 0 };
        Self { most, busy, interceptors, others, queue, arrivals, flash, others_served, waiting_served }
    }

    /// How many more interceptors, or others, may work.
    fn room(&self, intercepts: bool) -> usize {
        let (mut most, mut busy) = (self.most, self.busy);
        let own = *most.count(intercepts) - *busy.count(intercepts);
        own.min(self.most.all - self.busy.all)
    }

    fn take(&mut self, intercepts: bool) {
        self.busy.all += 1;
        *self.busy.count(intercepts) += 1;
    }

    fn give_back(&mut self, intercepts: bool) {
        self.busy.all -= 1;
        *self.busy.count(intercepts) -= 1;
    }

    /// A job comes. Returns whether its place depends on which of several events was faster at this moment.
    fn arrive(&mut self, job: usize, goes_first: bool, course: usize, now: u64) -> bool {
        if self.arrivals.0 != now {
            self.arrivals = (now, Vec::new());
        }
        self.arrivals.1.push(course);
        if goes_first { &mut self.interceptors } else { &mut self.others }
            .push_back(Waiting { job, since: now });
        let waiting = self.interceptors.len() + self.others.len();
        let (room, room_of_others) = (self.room(true), self.room(false));
        let is_short = self.interceptors.len() > room
            || self.others.len() > room_of_others
            || waiting > self.most.all - self.busy.all;
        // Whoever came first may have given its place back already, or may not if it came second.
        let is_contended = is_short || self.flash == Some(now);
        let contended = is_contended && self.arrivals.1.iter().any(|other| *other != course);
        // A moment earlier, it would have been given the place.
        let is_late = goes_first && self.others_served == Some(now);
        // A moment earlier, it would have found one more in the queue.
        let is_behind = self.queue.is_some() && self.waiting_served == Some(now);
        let is_full = room.min(room_of_others) == 0;
        contended || is_late || is_behind || (self.flash == Some(now) && (waiting > 1 || is_full))
    }

    fn next(&mut self, now: u64) -> Option<usize> {
        for intercepts in [true, false] {
            let has_room = self.room(intercepts) > 0;
            let queue = if intercepts { &mut self.interceptors } else { &mut self.others };
            if has_room && let Some(next) = queue.pop_front() {
                self.take(intercepts);
                if !intercepts {
                    self.others_served = Some(now);
                }
                if next.since < now {
                    self.waiting_served = Some(now);
                }
                return Some(next.job);
            }
        }
        None
    }

    fn leave(&mut self, job: usize) {
        self.interceptors.retain(|known| known.job != job);
        self.others.retain(|known| known.job != job);
    }

    /// Who is turned away if too many wait: the oldest that only watches, else the newest.
    fn surplus(&mut self) -> Option<usize> {
        let waiting = self.interceptors.len() + self.others.len();
        (waiting > self.queue?)
            .then(|| self.others.pop_front().or_else(|| self.interceptors.pop_back()))?
            .map(|next| next.job)
    }
}

impl Places {
    pub(super) fn new(bounds: &Bounds) -> Self {
        Self {
            native: Pool::new(Share::of_pool(bounds.native_places), None),
            prompt: Pool::new(Share::of_pool(bounds.prompt_places), Some(bounds.prompt_queue)),
            limits: BTreeMap::new(),
        }
    }

    fn next(&mut self, now: u64) -> Option<usize> {
        self.native.next(now).or_else(|| self.prompt.next(now))
    }

    /// A job that was in this state gives back what it had and stands in no queue.
    fn leave(&mut self, job: &Job<'_>, intercepts: bool, state: JobState, now: u64) {
        let pool = if job.is_native() { &mut self.native } else { &mut self.prompt };
        let number = job.number;
        let limit = job.limit.as_ref().and_then(|key| self.limits.get_mut(key));
        match state {
            JobState::New | JobState::Over => return,
            JobState::WaitsForLimit => {
                if let Some(limit) = limit {
                    limit.leave(number);
                }
                return;
            }
            JobState::WaitsForPool => pool.leave(number),
            JobState::Works => pool.give_back(intercepts),
        }
        let flash = (job.began == now).then_some(now);
        pool.flash = flash.or(pool.flash);
        if let Some(limit) = limit {
            limit.give_back(intercepts);
            limit.flash = flash.or(limit.flash);
        }
    }
}

impl<'a> Job<'a> {
    pub(super) fn new(
        number: usize,
        (course, step): (usize, usize),
        rule: &'a Rule,
        event: usize,
        script: Script,
        input: String,
        now: u64,
    ) -> Self {
        Self {
            number,
            course,
            step,
            state: JobState::New,
            rule,
            event,
            script,
            input,
            since: now,
            began: now,
            limit: None,
            was_shed: false,
            has_asked: false,
        }
    }

    pub(super) fn waits(&self) -> bool {
        matches!(self.state, JobState::WaitsForLimit | JobState::WaitsForPool)
    }

    fn is_native(&self) -> bool {
        matches!(self.rule.form, Form::Inline | Form::Task)
    }

    /// When its present work ends, counted from the start of the hook: by itself, or at the timeout.
    fn timeout_at(&self) -> u64 {
        self.began + self.rule.timeout
    }

    /// How it ended.
    pub(super) fn result(&self) -> Ended {
        if self.was_shed { Ended::Failed("shed") } else { Ended::of(self.rule, self.script) }
    }

    fn work(&self, to: u64, end: WorkEnd) -> Work {
        let (hook, input) = (self.rule.name.clone(), self.input.clone());
        Work { from: self.since, to, event: self.event, hook, end, input }
    }
}

impl Model<'_> {
    pub(super) fn submit(&mut self, job: usize) {
        let rule = self.jobs[job].rule;
        if rule.form == Form::Inline {
            self.observed.work.push(self.jobs[job].work(self.now, WorkEnd::Done));
            self.jobs[job].state = JobState::Over;
            return self.concluded.push(job);
        }
        let deadline = self.deadline(job);
        self.after(deadline, Timer::JobDeadline(job));
        let Some(most) = rule.most_at_once else { return self.enter_pool(job) };
        let workspace = self.event(self.jobs[job].event).run.workspace;
        let key = (workspace, rule.name.clone());
        let intercepts = self.courses[self.jobs[job].course].intercepts;
        self.jobs[job].limit = Some(key.clone());
        self.jobs[job].state = JobState::WaitsForLimit;
        let limit =
            self.places.limits.entry(key).or_insert_with(|| Pool::new(Share::of_hook(rule, most), None));
        self.has_ties |= limit.arrive(job, intercepts, self.jobs[job].course, self.now);
        self.grant_places();
    }

    /// How long a job may wait for its places.
    fn deadline(&self, job: usize) -> u64 {
        if self.jobs[job].is_native() { self.schedule.bounds.native_deadline } else { 30_000 }
    }

    fn enter_pool(&mut self, job: usize) {
        let native = self.jobs[job].is_native();
        let intercepts = self.courses[self.jobs[job].course].intercepts;
        self.jobs[job].state = JobState::WaitsForPool;
        let pool = if native { &mut self.places.native } else { &mut self.places.prompt };
        self.has_ties |= pool.arrive(job, intercepts, self.jobs[job].course, self.now);
        self.grant_places();
        if !native && let Some(surplus) = self.places.prompt.surplus() {
            self.shed(surplus);
        }
    }

    /// Gives free places to those that wait. A place in a pool goes to who waits there before the hook's own limit, which is
    /// free at the same moment, sends the next one to the pool.
    pub(super) fn grant_places(&mut self) {
        self.grant_places_in_pools();
        let keys: Vec<_> = self.places.limits.keys().cloned().collect();
        for key in keys {
            while let Some(job) = self.places.limits.get_mut(&key).and_then(|limit| limit.next(self.now)) {
                self.enter_pool(job);
            }
        }
    }

    fn grant_places_in_pools(&mut self) {
        while let Some(job) = self.places.next(self.now) {
            self.work(job);
        }
    }

    /// A job has its places, and its hook begins.
    fn work(&mut self, number: usize) {
        let job = &mut self.jobs[number];
        (job.state, job.since, job.began) = (JobState::Works, self.now, self.now);
        self.ask(number);
    }

    /// The hook works on its reply, or on the next one.
    fn ask(&mut self, number: usize) {
        let job = &self.jobs[number];
        let left = job.timeout_at() - self.now;
        let ends = if job.script.ending == Ending::Hang { None } else { Some(job.script.latency) };
        match ends.filter(|latency| *latency <= left) {
            Some(0) => self.asked(number),
            Some(latency) => self.after(latency, Timer::Asked(number)),
            None => self.after(left, Timer::Done(number)),
        }
    }

    /// The hook has its reply.
    pub(super) fn asked(&mut self, number: usize) {
        let job = &mut self.jobs[number];
        self.observed.work.push(job.work(self.now, WorkEnd::Done));
        let is_first = job.script.ending == Ending::Nonsense && !job.has_asked;
        if is_first {
            job.has_asked = true;
            job.since = self.now;
            return self.ask(number);
        }
        self.leave(number);
    }

    /// The hook's time is over.
    pub(super) fn done(&mut self, number: usize) {
        self.observed.work.push(self.jobs[number].work(self.now, WorkEnd::Dropped));
        self.leave(number);
    }

    /// A job gives back its places and concludes.
    fn leave(&mut self, number: usize) {
        self.jobs[number].state = JobState::Over;
        self.concluded.push(number);
        let intercepts = self.courses[self.jobs[number].course].intercepts;
        self.places.leave(&self.jobs[number], intercepts, JobState::Works, self.now);
        self.grant_places();
    }

    /// A job finds no place.
    pub(super) fn shed(&mut self, number: usize) {
        self.jobs[number].was_shed = true;
        let state = std::mem::replace(&mut self.jobs[number].state, JobState::Over);
        let intercepts = self.courses[self.jobs[number].course].intercepts;
        self.places.leave(&self.jobs[number], intercepts, state, self.now);
        self.concluded.push(number);
        self.grant_places();
    }

    /// Nobody wants the hooks of an event any more. Their places are free, and not yet granted to others.
    pub(super) fn drop_jobs(&mut self, course: usize) {
        self.courses[course].is_open = false;
        self.cuts.insert(self.now);
        let intercepts = self.courses[course].intercepts;
        for step in 0..self.courses[course].steps.len() {
            let Some(number) = self.courses[course].steps[step].job else { continue };
            let state = std::mem::replace(&mut self.jobs[number].state, JobState::Over);
            if state == JobState::Works {
                self.observed.work.push(self.jobs[number].work(self.now, WorkEnd::Dropped));
            }
            self.places.leave(&self.jobs[number], intercepts, state, self.now);
        }
    }
}
