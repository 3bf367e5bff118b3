//! The reference: what must come of a schedule, by the documents alone. Plain code that shares nothing with `src`.

mod course;
mod endings;
mod places;
pub(crate) mod run;

use std::collections::{BTreeMap, BTreeSet};

use hookyard::model::EventKind;

use crate::{
    observed::{Observed, Summary},
    schedule::{Does, Identity, Occurrence, Rule, RunName, Schedule, Waits},
    script::script,
};

use course::{Course, Ended};
use places::{Job, JobState, Places};
use run::{Request, Run};

/// What must come of a schedule.
pub(crate) struct Expected {
    pub(crate) observed: Observed,
    /// Whether two things happen at the same moment, so that their order is not known.
    pub(crate) has_ties: bool,
    /// When hooks were dropped that nobody wanted any more.
    pub(crate) cuts: BTreeSet<u64>,
}

/// How much of a limit events may take for which no host waits: they leave a quarter to others, and one at least, unless
/// there is only one.
fn part_of_detached(limit: usize) -> usize {
    match limit {
        1 => 1,
        2..=7 => limit - 1,
        _ => limit - limit / 4,
    }
}

/// What must come of a schedule.
pub(crate) fn expected(schedule: &Schedule) -> Expected {
    let mut model = Model::new(schedule);
    while let Some(((at, _), timer)) = model.timers.pop_first() {
        if !model.is_due(&timer) {
            continue;
        }
        let next = model.timers.range((at, 0)..=(at, u64::MAX)).any(|(_, timer)| model.is_due(timer));
        model.has_ties |= next || at == model.now;
        model.now = at;
        model.fire(timer);
        model.settle();
    }
    let Model { observed, has_ties, cuts, .. } = model;
    Expected { observed: observed.in_order(&cuts).by_first_call(), has_ties, cuts }
}

/// Whether an event shows that the agent works.
fn shows_work(kind: EventKind) -> bool {
    use EventKind as K;
    matches!(kind, K::PromptSubmitted | K::BeforeToolDispatch | K::AfterToolDispatch | K::ToolFailed)
}

/// The hooks for an event, in order, if the files of its workspace are of this version.
pub(crate) fn plan<'a>(schedule: &'a Schedule, version: usize, event: &Occurrence) -> Vec<&'a Rule> {
    let mut native: Vec<&Rule> = schedule.native.iter().collect();
    native.sort_by_key(|rule| rule.priority);
    let files = schedule.workspaces.get(event.run.workspace);
    let mut files: Vec<&Rule> =
        files.map(|files| files.versions[version].iter().collect()).unwrap_or_default();
    files.sort_by_key(|rule| (rule.is_judge(), rule.priority));
    native.into_iter().chain(files).filter(|rule| rule.wants(event)).collect()
}

/// What comes of an event by itself. `ends` says of hooks that they ended in a way that is not their script's.
pub(crate) fn alone(
    schedule: &Schedule,
    number: usize,
    plan: Vec<&Rule>,
    ends: &dyn Fn(&Rule) -> Option<&'static str>,
) -> Summary {
    let mut course = Course::new((number, 0), &schedule.events[number], plan, 0, Vec::new(), false);
    while let Some(steps) = course.next_stage() {
        for step in steps {
            let rule = course.steps[step].rule;
            let by_script = || Ended::of(rule, script(schedule, rule, number));
            course.steps[step].ended = Some(ends(rule).map_or_else(by_script, Ended::Failed));
        }
        if !course.settle_stage() {
            break;
        }
    }
    course.summary()
}

/// Something that happens at a certain time.
#[derive(Debug, Clone, Copy)]
enum Timer {
    Action(usize),
    /// A hook has nothing more to do.
    Done(usize),
    /// A question to the model is answered, and another one begins.
    Asked(usize),
    /// A job has waited too long for a place.
    JobDeadline(usize),
    /// A caller gives up.
    GiveUp(usize),
    /// An event has waited too long for its turn.
    PendingDeadline(usize),
    StopDeadline,
}

struct Model<'a> {
    schedule: &'a Schedule,
    now: u64,
    timers: BTreeMap<(u64, u64), Timer>,
    next_timer: u64,
    runs: BTreeMap<RunName, Run<'a>>,
    courses: Vec<Course<'a>>,
    jobs: Vec<Job<'a>>,
    places: Places,
    /// Conclusions of hooks that have not reached their event yet.
    concluded: Vec<usize>,
    /// The version of each workspace: which of its files, and the number of the snapshot.
    versions: Vec<(usize, u64)>,
    next_version: u64,
    /// How many callers hold a permit of `limits.in_flight`.
    in_flight: usize,
    decisions: usize,
    stopping: Option<u64>,
    has_ties: bool,
    /// When hooks were dropped that nobody wanted any more.
    cuts: BTreeSet<u64>,
    observed: Observed,
}

impl<'a> Model<'a> {
    fn new(schedule: &'a Schedule) -> Self {
        let places = schedule.workspaces.len().max(1);
        let timers = schedule.actions.iter().enumerate();
        let timers = timers.map(|(n, action)| ((action.at, n as u64), Timer::Action(n))).collect();
        let versions: Vec<_> = (0..places).map(|number| (0, number as u64 + 1)).collect();
        Self {
            schedule,
            now: 0,
            timers,
            next_timer: schedule.actions.len() as u64,
            runs: BTreeMap::new(),
            courses: Vec::new(),
            jobs: Vec::new(),
            places: Places::new(&schedule.bounds),
            concluded: Vec::new(),
            next_version: versions.len() as u64 + 1,
            versions,
            in_flight: 0,
            decisions: 0,
            stopping: None,
            has_ties: false,
            cuts: BTreeSet::new(),
            observed: Observed::default(),
        }
    }

    fn after(&mut self, wait: u64, timer: Timer) {
        self.timers.insert((self.now + wait, self.next_timer), timer);
        self.next_timer += 1;
    }

    /// Whether a timer still concerns anybody.
    fn is_due(&self, timer: &Timer) -> bool {
        match timer {
            Timer::Action(_) => true,
            Timer::Done(job) | Timer::Asked(job) => self.jobs[*job].state == JobState::Works,
            Timer::JobDeadline(job) => self.jobs[*job].waits(),
            Timer::GiveUp(call) => !self.observed.answers.contains_key(call),
            Timer::PendingDeadline(call) => self.is_pending(*call),
            Timer::StopDeadline => self.observed.stopped.is_none(),
        }
    }

    fn is_pending(&self, call: usize) -> bool {
        self.runs.values().any(|run| run.pending.iter().any(|request| request.call == call))
    }

    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Action(number) => match &self.schedule.actions[number].does {
                Does::Send { event, patience } => self.send(number, *event, *patience),
                Does::Cancel(run) => {
                    let cancelled = self.cancel(*run);
                    self.observed.cancelled.insert(number, cancelled);
                }
                Does::Reload { workspace, version } => {
                    self.versions[*workspace] = (*version, self.next_version);
                    self.next_version += 1;
                }
                Does::Stop { deadline } => {
                    self.stopping = Some(self.now);
                    self.after(*deadline, Timer::StopDeadline);
                }
            },
            Timer::Asked(job) => self.asked(job),
            Timer::Done(job) => self.done(job),
            Timer::JobDeadline(job) => self.shed(job),
            Timer::GiveUp(call) => self.give_up(call),
            Timer::PendingDeadline(call) => self.refuse(call),
            Timer::StopDeadline => self.cut_off(),
        }
    }

    /// Everything that follows without a wait.
    fn settle(&mut self) {
        loop {
            let names: Vec<_> = self.runs.keys().copied().collect();
            for name in names {
                self.start_pending(name);
                self.end_if_over(name);
            }
            let Some(job) = (!self.concluded.is_empty()).then(|| self.concluded.remove(0)) else { break };
            self.conclude(job);
        }
        if self.stopping.is_some() && self.observed.stopped.is_none() && self.in_flight == 0 {
            self.observed.stopped = Some((self.now, true));
        }
    }

    fn event(&self, number: usize) -> &'a Occurrence {
        &self.schedule.events[number]
    }

    fn send(&mut self, call: usize, number: usize, patience: Option<u64>) {
        if self.stopping.is_some() {
            return self.reject(call, "shutting down");
        }
        let event = self.event(number);
        let version = self.versions[event.run.workspace].1;
        let run = self.runs.get(&event.run);
        if event.is_interceptor()
            && let Some((by, reason)) = run.and_then(|run| run.halted.clone())
        {
            let summary = self.halted(by, reason, version);
            return self.answer(call, summary);
        }
        if let Some(run) = self.runs.get_mut(&event.run).filter(|_| shows_work(event.kind)) {
            run.stops_begin();
        }
        let run = self.runs.get(&event.run);
        let plan = plan(self.schedule, self.versions[event.run.workspace].0, event);
        if plan.is_empty() {
            if event.ends_run()
                && let Some(run) = self.runs.get_mut(&event.run)
            {
                run.ended = true;
            }
            let summary = self.plain(version);
            return self.answer(call, summary);
        }
        let bounds = &self.schedule.bounds;
        let part = |limit: usize| if event.is_detached() { part_of_detached(limit) } else { limit };
        if self.in_flight >= part(bounds.in_flight) {
            return self.reject(call, "in flight");
        }
        if run.is_none() && self.runs.len() >= bounds.runs {
            return self.reject(call, "runs");
        }
        if run.is_some_and(|run| run.in_hand >= part(bounds.pending_per_run)) {
            return self.reject(call, "pending per run");
        }
        if let Some(patience) = patience {
            self.after(patience, Timer::GiveUp(call));
        }
        self.in_flight += 1;
        self.runs.entry(event.run).or_default().in_hand += 1;
        self.accept(Request { call, event: number, plan, version });
    }

    fn accept(&mut self, request: Request<'a>) {
        let event = self.event(request.event);
        let Some(request) = self.join(request) else { return };
        if !event.is_interceptor() {
            return self.start(request);
        }
        self.after(self.schedule.bounds.pending_deadline, Timer::PendingDeadline(request.call));
        let run = self.runs.entry(event.run).or_default();
        run.pending.push_back(Request { plan: request.plan, ..request });
    }

    /// An event that was sent before gets the first outcome, now or when it is there.
    fn join(&mut self, request: Request<'a>) -> Option<Request<'a>> {
        let event = self.event(request.event);
        let run = self.runs.get(&event.run)?;
        if event.id == Identity::None {
            return Some(request);
        }
        if let Some((_, summary)) = run.answers.iter().find(|(known, _)| *known == request.event) {
            let summary = summary.clone();
            self.release(event.run, 1);
            self.answer(request.call, summary);
            return None;
        }
        let twin = run.courses.iter().copied().find(|course| self.courses[*course].event == request.event);
        let Some(twin) = twin else { return Some(request) };
        if self.courses[twin].detached {
            let summary = self.plain(request.version);
            self.release(event.run, 1);
            self.answer(request.call, summary);
        } else {
            self.courses[twin].callers.push(request.call);
        }
        None
    }

    fn start_pending(&mut self, name: RunName) {
        loop {
            let Some(run) = self.runs.get_mut(&name) else { return };
            let courses = &self.courses;
            let working = run.courses.iter().filter(|course| courses[**course].intercepts).count();
            if working >= self.schedule.bounds.interceptors {
                return;
            }
            let Some(request) = run.pending.pop_front() else { return };
            self.start(request);
            let Some(run) = self.runs.get_mut(&name) else { return };
            for request in std::mem::take(&mut run.pending) {
                if let Some(request) = self.join(request)
                    && let Some(run) = self.runs.get_mut(&name)
                {
                    run.pending.push_back(request);
                }
            }
        }
    }

    fn start(&mut self, request: Request<'a>) {
        let Request { call, event: number, plan, version } = request;
        let event = self.event(number);
        let Some(run) = self.runs.get_mut(&event.run) else { return };
        if event.is_interceptor()
            && let Some((by, reason)) = run.halted.clone()
        {
            let summary = self.halted(by, reason, version);
            self.release(event.run, 1);
            return self.answer(call, summary);
        }
        let had_turn = |rule: &&Rule| rule.is_once() && run.had_turn.contains(&rule.name);
        let plan: Vec<_> = plan.into_iter().filter(|rule| !had_turn(rule)).collect();
        run.had_turn.extend(plan.iter().filter(|rule| rule.is_once()).map(|rule| rule.name.clone()));
        let detached = event.waits == Waits::ForNothing;
        let course = self.courses.len();
        run.courses.push(course);
        let callers = if detached { Vec::new() } else { vec![call] };
        let acknowledgement = self.plain(version);
        let ids = (number, acknowledgement.decision);
        self.courses.push(Course::new(ids, event, plan, version, callers, detached));
        if detached {
            self.answer(call, acknowledgement);
        }
        self.enter_stage(course);
    }

    /// Begins the next stage of an event, or ends the event.
    fn enter_stage(&mut self, course: usize) {
        let Some(steps) = self.courses[course].next_stage() else { return self.finish(course) };
        let input = self.courses[course].input.text();
        for step in steps {
            let rule = self.courses[course].steps[step].rule;
            let event = self.courses[course].event;
            let script = script(self.schedule, rule, event);
            let job = self.jobs.len();
            self.jobs.push(Job::new(job, (course, step), rule, event, script, input.clone(), self.now));
            self.courses[course].steps[step].job = Some(job);
            self.submit(job);
        }
    }

    /// A hook's conclusion reaches its event.
    fn conclude(&mut self, job: usize) {
        let (course, step) = (self.jobs[job].course, self.jobs[job].step);
        let result = self.jobs[job].result();
        if !self.courses[course].is_open {
            return;
        }
        self.courses[course].steps[step].ended = Some(result);
        if self.courses[course].stage_is_over() {
            let goes_on = self.courses[course].settle_stage();
            if goes_on { self.enter_stage(course) } else { self.finish(course) }
        }
    }
}
