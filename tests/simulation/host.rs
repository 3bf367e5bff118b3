//! Runs a schedule through the library, on one thread and a paused clock.

mod files;
mod hooks;

use std::{collections::BTreeMap, num::NonZeroUsize, sync::Arc, time::Duration};

use hookyard::{
    DispatchError, Orchestrator, Overload,
    config::{Settings, TrustPolicy},
    model::{
        DecisionId, Delivery, Event, EventId, EventKind, Json, NoteKind, Outcome, RunId, SessionId, Target,
        ToolCallId, WorkspaceId,
    },
};
use tokio::{
    runtime,
    task::{JoinHandle, yield_now},
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    model::run::LOOP_BROKEN,
    observed::{Answer, Answered, Observed, Reason, Summary},
    schedule::{Action, Bounds, Does, Identity, RunName, Schedule, Waits, input_of},
};
pub(crate) use files::Directories;
use hooks::{Models, Workbench};

/// What happens in this time must have happened: the longest wait of any schedule is far shorter.
const EVERYTHING: Duration = Duration::from_mins(10);

/// After this time no timer is left that anything in a schedule has set.
const LONGEST_TIMER: Duration = Duration::from_mins(1);

/// How often a task lets others go first before it says that nothing more happens.
const SETTLED: usize = 200;

/// What the library did, or why it did not get to the end.
pub(crate) fn simulate(schedule: &Arc<Schedule>, directories: &Directories) -> Result<Observed, String> {
    let runtime = runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let observed = runtime.block_on(async {
        let run = Simulation::start(Arc::clone(schedule), directories).await?;
        let observed = run.run().await?;
        // A timer ends when its time has come, also if nobody needs it any more.
        sleep(LONGEST_TIMER).await;
        Ok::<_, String>(observed)
    })?;
    match runtime.metrics().num_alive_tasks() {
        0 => Ok(observed),
        left => Err(format!("{left} tasks are left after the end")),
    }
}

/// A schedule under way.
struct Simulation<'a> {
    schedule: Arc<Schedule>,
    orchestrator: Orchestrator,
    directories: &'a Directories,
    bench: Arc<Workbench>,
    began: Instant,
    sent: Vec<(usize, JoinHandle<(u64, Sent)>)>,
    cancelled: BTreeMap<usize, (usize, usize)>,
    stop: Option<JoinHandle<(u64, bool)>>,
    /// How many tasks there are without a run.
    tasks_at_rest: usize,
}

/// What a `Send` got: nothing if its caller gave up.
type Sent = Option<Result<Outcome, DispatchError>>;

impl<'a> Simulation<'a> {
    async fn start(schedule: Arc<Schedule>, directories: &'a Directories) -> Result<Self, String> {
        let began = Instant::now();
        let bench = Arc::new(Workbench::new(Arc::clone(&schedule), began));
        let mut builder = Orchestrator::builder()
            .settings(settings(&schedule.bounds))
            .trust(TrustPolicy::Off)
            .model_client(Models(Arc::clone(&bench)));
        for number in 0..schedule.native.len() {
            builder = builder.native_hook(bench.native_hook(number));
        }
        for (number, files) in schedule.workspaces.iter().enumerate() {
            directories.write(number, &files.versions[0]);
            builder = builder.workspace_as(workspace(number), directories.root(number));
        }
        let orchestrator = builder.start().await.map_err(|error| error.to_string())?;
        let run = Self {
            orchestrator,
            directories,
            bench,
            began,
            sent: Vec::new(),
            cancelled: BTreeMap::new(),
            stop: None,
            tasks_at_rest: alive_tasks(),
            schedule,
        };
        for number in 0..run.schedule.workspaces.len() {
            run.check_load(number, 0)?;
        }
        Ok(run)
    }

    /// Every hook of the files was loaded.
    fn check_load(&self, number: usize, version: usize) -> Result<(), String> {
        let report = self.orchestrator.load_report(&workspace(number)).ok_or("no load report")?;
        let hooks = self.schedule.native.len() + self.schedule.workspaces[number].versions[version].len();
        if report.hooks == hooks { Ok(()) } else { Err(format!("{hooks} hooks were written: {report:?}")) }
    }

    async fn run(mut self) -> Result<Observed, String> {
        for (number, action) in self.schedule.actions.clone().into_iter().enumerate() {
            sleep_until(self.began + Duration::from_millis(action.at)).await;
            self.act(number, action).await?;
        }
        let mut observed = Observed::default();
        let mut outcomes = Vec::new();
        for (number, sent) in std::mem::take(&mut self.sent) {
            let sent = timeout(EVERYTHING, sent).await.map_err(|_| format!("{number} gets no answer"))?;
            outcomes.push((number, sent.map_err(|error| error.to_string())?));
        }
        if let Some(stop) = self.stop.take() {
            let stop = timeout(EVERYTHING, stop).await.map_err(|_| "the shutdown does not end")?;
            observed.stopped = Some(stop.map_err(|error| error.to_string())?);
        } else {
            self.check_rest().await?;
            if !self.orchestrator.shutdown(EVERYTHING).await {
                return Err("something of the schedule never ends".to_owned());
            }
        }
        for _ in 0..SETTLED {
            if self.orchestrator.in_flight() == 0 {
                break;
            }
            yield_now().await;
        }
        match self.orchestrator.in_flight() {
            0 => {}
            left => return Err(format!("{left} events are in flight after the end")),
        }
        observed.cancelled = std::mem::take(&mut self.cancelled);
        observed.answers = answers(outcomes)?;
        observed.work = self.bench.take();
        Ok(observed)
    }

    /// Some time after the last event, no task is left of the runs.
    async fn check_rest(&self) -> Result<(), String> {
        sleep(LONGEST_TIMER).await;
        let left = alive_tasks().saturating_sub(self.tasks_at_rest);
        if left == 0 { Ok(()) } else { Err(format!("{left} tasks are left of the runs")) }
    }

    async fn act(&mut self, number: usize, action: Action) -> Result<(), String> {
        let (orchestrator, began) = (self.orchestrator.clone(), self.began);
        for _ in 0..action.yields {
            yield_now().await;
        }
        match action.does {
            Does::Send { event, patience } => {
                let event = self.event(event);
                self.sent.push((number, tokio::spawn(send(orchestrator, event, patience, began))));
            }
            Does::Cancel(run) => {
                let place = workspace_of(&self.schedule, run);
                let summary = orchestrator.cancel_run(Some(&place), &run_id(run)).await;
                self.cancelled.insert(number, (summary.runs, summary.events));
            }
            Does::Reload { workspace: place, version } => {
                self.directories.write(place, &self.schedule.workspaces[place].versions[version]);
                let loaded = orchestrator.reload_workspace(&workspace(place)).await;
                loaded.map_err(|error| error.to_string())?;
                self.check_load(place, version)?;
            }
            Does::Stop { deadline } => {
                self.stop = Some(tokio::spawn(async move {
                    let finished = orchestrator.shutdown(Duration::from_millis(deadline)).await;
                    (since(began), finished)
                }));
                // From here on it takes no events.
                yield_now().await;
            }
        }
        Ok(())
    }

    fn event(&self, number: usize) -> Event {
        let occurrence = &self.schedule.events[number];
        let mut event = Event::new(occurrence.kind, session(occurrence.run), run_id(occurrence.run));
        event.workspace_id = Some(workspace_of(&self.schedule, occurrence.run));
        let input = Json::parse(&input_of(number)).expect("it is JSON");
        match occurrence.kind {
            EventKind::BeforeToolDispatch => event.targets.set(Target::ToolInput, input),
            EventKind::AfterToolDispatch => event.targets.set(Target::ToolOutput, input),
            _ => {}
        }
        event.attributes.tool_name = Some(occurrence.tool.into());
        event.extra.push(("n".into(), Json::of(&number).expect("a number is JSON")));
        match occurrence.id {
            Identity::None => {}
            Identity::EventId => event.id = EventId::new(format!("e-{number}")).ok(),
            Identity::ToolCall => event.tool_call_id = ToolCallId::new(format!("c-{number}")).ok(),
        }
        if occurrence.waits == Waits::ForNothing {
            event.delivery = Delivery::Detached;
        }
        event
    }
}

async fn send(
    orchestrator: Orchestrator,
    event: Event,
    patience: Option<u64>,
    began: Instant,
) -> (u64, Sent) {
    let patience = patience.map_or(Duration::MAX, Duration::from_millis);
    let answer = timeout(patience, orchestrator.dispatch(event)).await.ok();
    (since(began), answer)
}

/// How many tasks the runtime has.
fn alive_tasks() -> usize {
    runtime::Handle::current().metrics().num_alive_tasks()
}

fn since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).expect("a simulation is short")
}

fn workspace(number: usize) -> WorkspaceId {
    WorkspaceId::new(format!("place-{number}")).expect("it is an id")
}

fn workspace_of(schedule: &Schedule, run: RunName) -> WorkspaceId {
    if schedule.workspaces.is_empty() {
        return WorkspaceId::new("native").expect("it is an id");
    }
    workspace(run.workspace)
}

fn run_id(run: RunName) -> RunId {
    RunId::new(format!("run-{}", run.run)).expect("it is an id")
}

fn session(run: RunName) -> SessionId {
    SessionId::new(format!("session-{}", run.run % 2)).expect("it is an id")
}

fn settings(bounds: &Bounds) -> Settings {
    let mut settings = Settings { watch: false, ..Settings::default() };
    let pools = &mut settings.pools;
    for pool in [&mut pools.command, &mut pools.http, &mut pools.agent] {
        pool.concurrency = NonZeroUsize::MIN;
    }
    pools.prompt.concurrency = at_least_one(bounds.prompt_places);
    pools.prompt.queue = at_least_one(bounds.prompt_queue);
    pools.native.concurrency = at_least_one(bounds.native_places);
    // The one that native hooks have.
    pools.command.queue_deadline = Duration::from_millis(bounds.native_deadline);
    settings.interceptor_concurrency = at_least_one(bounds.interceptors);
    settings.run_idle = Duration::from_millis(bounds.run_idle);
    settings.limits.in_flight = at_least_one(bounds.in_flight);
    settings.limits.pending_per_run = at_least_one(bounds.pending_per_run);
    settings.limits.pending_deadline = Duration::from_millis(bounds.pending_deadline);
    settings.limits.runs = at_least_one(bounds.runs);
    settings
}

fn at_least_one(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).expect("a bound is not zero")
}

/// The answers in the words of the reference.
fn answers(sent: Vec<(usize, (u64, Sent))>) -> Result<BTreeMap<usize, Answered>, String> {
    let mut decisions: Vec<(DecisionId, usize)> = Vec::new();
    let mut answers = BTreeMap::new();
    for (number, (at, sent)) in sent {
        let answer = match sent {
            None => Answer::GivenUp,
            Some(Err(error)) => Answer::Error(error_name(&error)?),
            Some(Ok(outcome)) => {
                let known = decisions.iter().find(|(id, _)| *id == outcome.decision_id);
                let decision = known.map_or(number, |(_, first)| *first);
                decisions.push((outcome.decision_id, decision));
                Answer::Outcome(Box::new(summary(&outcome, decision)))
            }
        };
        answers.insert(number, Answered { at, answer });
    }
    Ok(answers)
}

fn error_name(error: &DispatchError) -> Result<String, String> {
    let name = match error {
        DispatchError::ShuttingDown => "shutting down",
        DispatchError::Interrupted => "interrupted",
        DispatchError::Overloaded(Overload::InFlight) => "in flight",
        DispatchError::Overloaded(Overload::PendingPerRun) => "pending per run",
        DispatchError::Overloaded(Overload::PendingDeadline) => "pending deadline",
        DispatchError::Overloaded(Overload::Runs) => "runs",
        other => return Err(format!("no event of a simulation gets this: {other}")),
    };
    Ok(name.to_owned())
}

fn summary(outcome: &Outcome, decision: usize) -> Summary {
    let by = outcome.by.as_ref().map(ToString::to_string);
    let reason = outcome.reason.as_deref().map(|reason| reason_of(reason, by.as_deref()));
    let hooks = outcome.hooks.iter().map(|hook| (hook.hook.to_string(), hook.ended.as_str(), hook.verdict));
    let notes = outcome.notes.iter().map(|note| {
        let text = if note.kind == NoteKind::LoopBroken { LOOP_BROKEN } else { &note.text };
        (note.hook.to_string(), text.to_owned())
    });
    Summary {
        decision,
        verdict: outcome.verdict,
        reason,
        patched: outcome.patched.get(Target::ToolInput).map(|input| input.as_str().to_owned()),
        notes: notes.collect(),
        hooks: hooks.collect(),
        version: outcome.snapshot_version,
        by,
    }
}

fn reason_of(reason: &str, by: Option<&str>) -> Reason {
    match by {
        None if reason == "the run was cancelled" => Reason::Cancelled,
        Some(by) if reason.starts_with(&format!("hook `{by}` ")) => Reason::Failure,
        _ => Reason::Words(reason.to_owned()),
    }
}
