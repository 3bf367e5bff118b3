//! Runs one command hook in each mode that it can take, compares the answers with those of a process for each event, and
//! measures how long they take.

use std::{path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::super::worker_probe::command_runner;
use crate::{
    config::{HandlerMode, LoadedWorkspace, Settings},
    handler::{BackgroundSwitch, Invocation, Runner, command::CommandRunner},
    model::{CommandMode, Draft, Event, Handler, Hook, RawReply, Redactor, Reply, WorkerBounds, Workspace},
    registry::RegisteredHook,
    telemetry::HookMeters,
};

/// How long a process that was started before its event is kept once, so that an answer with the time of its start shows.
const HELD: Duration = Duration::from_millis(1_100);

/// How long a worker may take at least until it says hello.
const LEAST_HELLO: Duration = Duration::from_secs(1);

/// How long a spare may take at least until it waits.
const LEAST_SPARE_WAIT: Duration = Duration::from_secs(1);

/// The longest time that is left to an interpreter to start.
const LONGEST_START: Duration = Duration::from_secs(2);

/// How often it is looked whether a spare waits.
const SPARE_POLL: Duration = Duration::from_millis(2);

/// An event for a hook, and what messages call it.
#[derive(Debug, Clone)]
pub(in crate::cli) struct TrialEvent {
    pub(super) label: String,
    pub(super) event: Arc<Event>,
}

/// How one mode of a hook did.
#[derive(Debug)]
pub(super) struct ModeTrial {
    pub(super) mode: HandlerMode,
    /// The time of each answer.
    pub(super) times: Vec<Duration>,
    /// Why it cannot be used.
    pub(super) refused: Option<String>,
    /// Whether that is because the hook fails.
    pub(super) fails: bool,
}

/// Why a hook was not measured to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum TrialStop {
    OutOfTime,
    Cancelled,
}

/// An answer, as far as it has to be the same in every mode.
#[derive(Debug, PartialEq)]
struct TrialAnswer {
    exit_code: i32,
    stdout: Bytes,
    truncated: bool,
    reply: Reply,
}

/// Runs the hooks of a workspace.
#[derive(Debug)]
pub(in crate::cli) struct HookTrials {
    runner: CommandRunner,
    workspace: Workspace,
    project_roots: Arc<[PathBuf]>,
    cancel: CancellationToken,
}

impl ModeTrial {
    fn new(mode: HandlerMode) -> Self {
        Self { mode, times: Vec::new(), refused: None, fails: false }
    }

    /// The median time; `None` for a mode that cannot be used.
    pub(super) fn median(&self) -> Option<Duration> {
        if self.refused.is_some() {
            return None;
        }
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }

    /// Takes down the time of an answer, or why the mode cannot be used.
    fn add(&mut self, answered: Result<Duration, String>, label: &str) {
        match answered {
            Ok(took) => self.times.push(took),
            Err(why) => self.refused = Some(format!("{why} ({label})")),
        }
    }
}

impl HookTrials {
    pub(in crate::cli) fn new(
        settings: &Settings,
        loaded: &LoadedWorkspace,
        cancel: &CancellationToken,
    ) -> Self {
        let (workspace, project_roots) = (loaded.workspace.clone(), loaded.project_roots.clone().into());
        Self { runner: command_runner(settings), workspace, project_roots, cancel: cancel.clone() }
    }

    /// Ends every process that it has started.
    pub(in crate::cli) async fn end(&self) {
        self.runner.stop();
        self.runner.end_escaped().await;
    }

    /// Has a hook answer so many events in each mode. Of several modes that cannot be used, each says why.
    ///
    /// Returns an error if it was stopped before.
    pub(super) async fn measure(
        &self,
        hook: &Hook,
        events: &[TrialEvent],
        rounds: usize,
        deadline: Instant,
    ) -> Result<[ModeTrial; 3], TrialStop> {
        let trial =
            HookTrial { trials: self, deadline, variants: HandlerMode::ALL.map(|mode| in_mode(hook, mode)) };
        let measured = trial.run(events, rounds).await;
        self.runner.stop();
        measured
    }

    /// Has a hook answer one event with a process of its own. The inner error says why it fails.
    ///
    /// Returns an error if it was stopped before.
    pub(super) async fn reply(
        &self,
        hook: &Hook,
        event: &Arc<Event>,
        deadline: Instant,
    ) -> Result<Result<(Reply, Duration), String>, TrialStop> {
        let variants = HandlerMode::ALL.map(|mode| in_mode(hook, mode));
        let answered =
            HookTrial { trials: self, deadline, variants }.ask(HandlerMode::Oneshot, event).await?;
        Ok(answered.map(|(answer, took)| (answer.reply, took)))
    }
}

/// The hook as it is in a mode.
fn in_mode(hook: &Hook, mode: HandlerMode) -> Arc<RegisteredHook> {
    let mut hook = hook.clone();
    if let Handler::Command(command) = &mut hook.handler {
        command.mode = match (mode, command.mode) {
            (HandlerMode::Oneshot, _) => CommandMode::Oneshot,
            (HandlerMode::Prespawn, _) => CommandMode::Prespawn { spares: std::num::NonZeroUsize::MIN },
            (HandlerMode::Worker, own @ CommandMode::Worker(_)) => own,
            (HandlerMode::Worker, _) => CommandMode::Worker(WorkerBounds::default()),
        };
    }
    Arc::new(RegisteredHook { rank: 0, redactor: Redactor::of(&hook.handler), hook })
}

/// The trial of one hook.
struct HookTrial<'a> {
    trials: &'a HookTrials,
    deadline: Instant,
    /// The hook in each mode, in the order of [`HandlerMode::ALL`].
    variants: [Arc<RegisteredHook>; 3],
}

impl HookTrial<'_> {
    async fn run(&self, events: &[TrialEvent], rounds: usize) -> Result<[ModeTrial; 3], TrialStop> {
        let [mut oneshot, mut prespawn, mut worker] = HandlerMode::ALL.map(ModeTrial::new);
        let mut references: Vec<Option<TrialAnswer>> = events.iter().map(|_| None).collect();
        // Once more in the beginning: an answer that differs from time to time can be compared with none.
        let turns = std::iter::once(0).chain(0..rounds);
        for (turn, round) in turns.enumerate() {
            let index = round % events.len();
            let TrialEvent { label, event } = &events[index];
            let reference = &mut references[index];
            let (answer, took) = match self.ask(HandlerMode::Oneshot, event).await? {
                Ok(answered) => answered,
                Err(why) => {
                    oneshot.refused = Some(format!("it fails: {why} ({label})"));
                    oneshot.fails = true;
                    break;
                }
            };
            if let Some(difference) = reference.as_ref().and_then(|known| difference(known, &answer)) {
                oneshot.refused =
                    Some(format!("to the same event, {difference} from time to time ({label})"));
                break;
            }
            let reference = reference.get_or_insert(answer);
            if turn == 0 {
                // The files that it reads are in memory from now on.
                self.warm_up(event, took, &mut prespawn, &mut worker).await?;
                continue;
            }
            oneshot.times.push(took);
            if worker.refused.is_none() {
                worker.add(self.answer_as(HandlerMode::Worker, event, reference).await?, label);
            }
            if prespawn.refused.is_none() {
                let is_last = round + 1 == rounds;
                let answered = self.ask_spare(event, took, reference, is_last).await?;
                prespawn.add(answered, label);
            }
        }
        Ok([oneshot, prespawn, worker])
    }

    /// Starts what is kept between events, and finds out whether the hook can do without.
    async fn warm_up(
        &self,
        event: &Arc<Event>,
        oneshot: Duration,
        prespawn: &mut ModeTrial,
        worker: &mut ModeTrial,
    ) -> Result<(), TrialStop> {
        worker.refused = self.probe_worker(event, oneshot).await?;
        if worker.refused.is_none() {
            // Its first event starts it.
            worker.refused = self.ask(HandlerMode::Worker, event).await?.err();
        }
        // Finds no spare, and has one started.
        prespawn.refused = self.ask(HandlerMode::Prespawn, event).await?.err();
        Ok(())
    }

    /// Why the hook is no worker.
    async fn probe_worker(&self, event: &Arc<Event>, oneshot: Duration) -> Result<Option<String>, TrialStop> {
        let trials = self.trials;
        let hook = &self.variant(HandlerMode::Worker).hook;
        let draft = Draft::new(Arc::clone(event));
        let workspace = hook.workspace(&trials.workspace);
        let probe = trials.runner.probe_worker(hook, &draft, workspace, &trials.project_roots);
        let hello_timeout = (oneshot * 5).max(LEAST_HELLO);
        let said = tokio::select! {
            said = timeout(hello_timeout, probe) => said.unwrap_or_else(|_| Err("it waited for its input".to_owned())),
            () = trials.cancel.cancelled() => return Err(TrialStop::Cancelled),
            () = sleep_until(self.deadline) => return Err(TrialStop::OutOfTime),
        };
        let redactor = Redactor::of(&hook.handler);
        Ok(said.err().map(|why| format!("it does not speak the worker protocol: {}", redactor.string(why))))
    }

    /// Has a process answer that was started before, with the same inner error. `oneshot` is how long one takes from its
    /// start.
    async fn ask_spare(
        &self,
        event: &Arc<Event>,
        oneshot: Duration,
        reference: &TrialAnswer,
        is_last: bool,
    ) -> Result<Result<Duration, String>, TrialStop> {
        const ACTS: &str = "a process that is started before its event does not wait for it";
        let invocation = self.invocation(HandlerMode::Prespawn, event);
        let end = Instant::now() + (oneshot * 5).max(LEAST_SPARE_WAIT);
        while !self.trials.runner.has_quiet_spare(&invocation) {
            if Instant::now() >= end {
                return Ok(Err(ACTS.to_owned()));
            }
            self.pause(SPARE_POLL).await?;
        }
        // Its interpreter starts meanwhile.
        let start = (oneshot * 3 / 2).min(LONGEST_START);
        self.pause(if is_last { start.max(HELD) } else { start }).await?;
        if !self.trials.runner.has_quiet_spare(&invocation) {
            return Ok(Err(ACTS.to_owned()));
        }
        self.answer_as(HandlerMode::Prespawn, event, reference).await
    }

    /// Has the hook answer in a mode. The inner error says why it fails, or how the answer differs.
    async fn answer_as(
        &self,
        mode: HandlerMode,
        event: &Arc<Event>,
        reference: &TrialAnswer,
    ) -> Result<Result<Duration, String>, TrialStop> {
        let answered = self.ask(mode, event).await?;
        Ok(answered.and_then(|(answer, took)| {
            let answer =
                if mode == HandlerMode::Worker { answer.in_terms_of_a_process(reference) } else { answer };
            difference(reference, &answer).map_or(Ok(took), Err)
        }))
    }

    /// Has the hook answer in a mode. The inner error says why it fails.
    async fn ask(
        &self,
        mode: HandlerMode,
        event: &Arc<Event>,
    ) -> Result<Result<(TrialAnswer, Duration), String>, TrialStop> {
        let invocation = self.invocation(mode, event);
        let cancel = self.trials.cancel.child_token();
        let begun = Instant::now();
        let mut running = self.trials.runner.run(&invocation, &cancel);
        let output = tokio::select! {
            output = &mut running => output,
            () = sleep_until(self.deadline) => {
                cancel.cancel();
                running.await;
                return Err(TrialStop::OutOfTime);
            }
        };
        let took = begun.elapsed();
        if self.trials.cancel.is_cancelled() {
            return Err(TrialStop::Cancelled);
        }
        let RegisteredHook { hook, redactor, .. } = &*invocation.hook;
        // A warning about a worker means that a process of its own has answered.
        let warning = output.warnings.into_iter().next().filter(|_| mode == HandlerMode::Worker);
        if let Some(why) = warning {
            return Ok(Err(redactor.string(why)));
        }
        let raw = match output.result {
            Ok(raw) => raw,
            Err(failure) => return Ok(Err(redactor.failure(failure).message)),
        };
        let RawReply::Command { exit_code, stdout, truncated, .. } = raw.clone() else {
            return Ok(Err("its answer is not that of a command".to_owned()));
        };
        let read = redactor.read(raw, |raw| hook.read_reply(event.kind, raw));
        Ok(match read {
            Err(failure) => Err(failure.message),
            Ok(Reply { failure: Some(failure), .. }) => Err(failure.message),
            Ok(reply) => Ok((TrialAnswer { exit_code, stdout, truncated, reply }, took)),
        })
    }

    fn invocation(&self, mode: HandlerMode, event: &Arc<Event>) -> Invocation {
        let trials = self.trials;
        let registered = self.variant(mode);
        let hook = &registered.hook;
        let workspace = hook.workspace(&trials.workspace);
        let draft = Draft::new(Arc::clone(event));
        Invocation {
            envelope: hook.dialect.envelope(&draft, &trials.workspace),
            environment: hook.dialect.environment(&draft, workspace, hook.timeout),
            event: Arc::clone(event),
            root: trials.workspace.root.clone(),
            project_roots: Arc::clone(&trials.project_roots),
            timeout: hook.timeout,
            meters: Arc::new(HookMeters::resolve(hook)),
            hook: Arc::clone(registered),
            permit: None,
            background: BackgroundSwitch::default(),
        }
    }

    fn variant(&self, mode: HandlerMode) -> &Arc<RegisteredHook> {
        let [oneshot, prespawn, worker] = &self.variants;
        match mode {
            HandlerMode::Oneshot => oneshot,
            HandlerMode::Prespawn => prespawn,
            HandlerMode::Worker => worker,
        }
    }

    async fn pause(&self, time: Duration) -> Result<(), TrialStop> {
        tokio::select! {
            () = sleep(time) => Ok(()),
            () = self.trials.cancel.cancelled() => Err(TrialStop::Cancelled),
            () = sleep_until(self.deadline) => Err(TrialStop::OutOfTime),
        }
    }
}

impl TrialAnswer {
    /// The answer of a worker as a process would have given it: its lines have no end of their own, and `{}` is how it
    /// says nothing.
    fn in_terms_of_a_process(self, reference: &Self) -> Self {
        let is_same = match reference.stdout.trim_ascii_end() {
            b"" => self.stdout.trim_ascii() == b"{}",
            said => self.stdout.trim_ascii_end() == said,
        };
        let stdout = if is_same { reference.stdout.clone() } else { self.stdout };
        Self { stdout, ..self }
    }
}

/// How an answer differs from another one. What hooks print is not repeated: it may be confidential.
fn difference(known: &TrialAnswer, other: &TrialAnswer) -> Option<String> {
    let (was, is) = (known.reply.decision.verdict(), other.reply.decision.verdict());
    if known.exit_code != other.exit_code {
        Some(format!("its exit code is {} instead of {}", other.exit_code, known.exit_code))
    } else if was != is {
        Some(format!("its verdict is {is} instead of {was}"))
    } else if (&known.stdout, known.truncated) != (&other.stdout, other.truncated) {
        Some("its standard output differs".to_owned())
    } else {
        (known.reply != other.reply).then(|| "its answer differs".to_owned())
    }
}
