//! Puts together what is measured: the scenario, its hooks, the target and the plan.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use super::{
    super::{
        escape,
        exit::CliError,
        flags::{DialectFlag, SettingsFlags, TrustFlag, WorkspaceFlags},
        replay::{Recording, print_unreadable_lines},
        screen::Screen,
        session::CommandSession,
        settings::tell,
        units::plural_u64,
        workspace::LocatedWorkspace,
    },
    events::{EventPlace, EventSource},
    flags::TargetFlags,
    load::LoadSubject,
    report::{LoadDescription, ScenarioEvent, ScenarioSummary},
    scenario::{LoadPlan, Scenario, ScenarioHooks, ScenarioLoad},
    scenario_file,
    scratch::ScratchWorkspace,
    target::{
        BenchTarget, DaemonAddress, DaemonTarget, DaemonToken, InProcessTarget, LinesTarget, RemotePolicy,
    },
};
use crate::config::Settings;

/// How many events may be under way in an open loop, if nothing says it: connections of a large host, and more where there
/// are none.
const CONNECTIONS: u32 = 64;
const IN_PROCESS: u32 = 1024;

/// The first rate of a search, if nothing says it.
const FIRST_RATE: f64 = 100.0;

/// Whether the highest rate is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadPurpose {
    Measure,
    Search,
}

/// What is said of mistakes in hook files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HookNotes {
    Printed,
    /// Whoever calls says it.
    Left,
}

/// What the command line says of one or both settings.
#[derive(Debug)]
pub(super) struct SideRequest<'c> {
    pub(super) scenario: Option<&'c Path>,
    pub(super) recording: Option<&'c Path>,
    pub(super) dialect: DialectFlag,
    pub(super) sessions: Option<u32>,
    pub(super) target: &'c TargetFlags,
    pub(super) load: ScenarioLoad,
    pub(super) trust: TrustFlag,
    pub(super) workspace: WorkspaceFlags,
    pub(super) purpose: LoadPurpose,
}

/// One setting, ready to be measured.
#[derive(Debug)]
pub(super) struct BenchSide {
    pub(super) subject: LoadSubject,
    pub(super) plan: LoadPlan,
    pub(super) description: LoadDescription,
    /// The orchestrator of a target in process.
    pub(super) session: Option<CommandSession>,
    /// The hooks that the scenario brings.
    _scratch: Option<ScratchWorkspace>,
}

/// The target, and what is said of it.
struct PreparedTarget {
    target: BenchTarget,
    version: String,
    hooks: String,
    /// The largest event that it takes, in bytes.
    largest: usize,
    /// The working directory that events name.
    cwd: Option<PathBuf>,
    session: Option<CommandSession>,
    scratch: Option<ScratchWorkspace>,
}

impl SideRequest<'_> {
    /// Puts everything together.
    ///
    /// Returns an error if the scenario or its hooks have mistakes, or the target cannot be reached.
    pub(super) async fn prepare(self, screen: &Screen) -> Result<BenchSide, CliError> {
        let scenario = self.scenario.map_or_else(scenario_file::built_in, scenario_file::read);
        let mut scenario = scenario.map_err(|diagnostics| {
            let told = tell(&diagnostics, screen);
            told.err().unwrap_or(CliError::AlreadyReported)
        })?;
        if let Some(sessions) = self.sessions {
            scenario.sessions = sessions;
        }
        let label = label();
        let prepared = self.target(&scenario, &label, screen).await?;
        let plan = self.plan(&scenario, screen);
        let workspace_id = self.target.workspace_id.as_deref().or(scenario.workspace_id.as_deref());
        let is_daemon = prepared.session.is_none();
        let place = EventPlace {
            workspace_id: workspace_id.filter(|_| is_daemon),
            cwd: prepared.cwd.as_deref().filter(|_| is_daemon),
        };
        let events = match self.recording {
            None => EventSource::of_scenario(&scenario, place, plan.seed, label),
            Some(file) => {
                let recording = self.recording(file, prepared.largest, screen)?;
                EventSource::of_recording(&recording, scenario.sessions, place, label)
            }
        };
        let description = LoadDescription {
            scenario: summary(&scenario, self.recording, prepared.hooks),
            target: prepared.target.name(),
            target_version: prepared.version,
            load: plan.clone(),
        };
        let subject = LoadSubject { target: Arc::new(prepared.target), events: Arc::new(events) };
        Ok(BenchSide { subject, plan, description, session: prepared.session, _scratch: prepared.scratch })
    }

    fn plan(&self, scenario: &Scenario, screen: &Screen) -> LoadPlan {
        let mut load = self.load.clone().or(&scenario.load);
        if self.purpose == LoadPurpose::Search {
            load.concurrency = None;
            load.rate.get_or_insert(FIRST_RATE);
        }
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let open = if self.is_in_process() { IN_PROCESS } else { CONNECTIONS };
        let closed = u32::try_from(cores * 2).unwrap_or(CONNECTIONS);
        let asked = load.concurrency.or(load.in_flight).unwrap_or(0);
        if asked > scenario.sessions {
            let note = screen.err.paint.yellow("note:");
            let sessions = plural_u64(u64::from(scenario.sessions), "session");
            screen.note(&format!(
                "{note} {sessions} have no more events under way than that; `--sessions` gives more"
            ));
        }
        load.plan(scenario.sessions, (closed, open))
    }

    fn is_in_process(&self) -> bool {
        !self.target.is_socket() && self.target.url.is_none()
    }

    fn recording(&self, file: &Path, largest: usize, screen: &Screen) -> Result<Recording, CliError> {
        let recording = Recording::read(file, self.dialect.dialect, largest)?;
        print_unreadable_lines(&recording, screen);
        if recording.events == 0 {
            let what = format!("{} has no events", escape::path(&recording.name));
            return Err(CliError::with_help(what, "a recording has one JSON event per line"));
        }
        Ok(recording)
    }

    async fn target(
        &self,
        scenario: &Scenario,
        label: &str,
        screen: &Screen,
    ) -> Result<PreparedTarget, CliError> {
        if !self.is_in_process() {
            return self.daemon(scenario).await;
        }
        match &scenario.hooks {
            ScenarioHooks::Inline(hooks) if self.workspace.workspace.is_none() => {
                if !hooks.is_empty() && !self.trust.trust_workspace {
                    let what = "the scenario has hooks of its own, and nobody has agreed to run them";
                    return Err(CliError::with_help(what, "read them, and add `--trust-workspace`"));
                }
                let scratch = ScratchWorkspace::write(hooks, label)?;
                let settings =
                    SettingsFlags { home: Some(scratch.home()), ..self.workspace.settings.clone() };
                let flags = WorkspaceFlags { workspace: Some(scratch.workspace()), settings };
                let (target, session) = self.in_process(&flags, HookNotes::Left, screen).await?;
                let file = Path::new(&scenario.name);
                let wrong = ScratchWorkspace::in_scenario(&session.report.diagnostics, file);
                tell(&wrong, screen)?;
                let hooks = format!("{} of the scenario", hooks.len());
                Ok(PreparedTarget { hooks, session: Some(session), scratch: Some(scratch), ..target })
            }
            ScenarioHooks::Workspace(directory) if self.workspace.workspace.is_none() => {
                let settings = self.workspace.settings.clone();
                let flags = WorkspaceFlags { workspace: Some(directory.clone()), settings };
                let (target, session) = self.in_process(&flags, HookNotes::Printed, screen).await?;
                Ok(PreparedTarget { session: Some(session), ..target })
            }
            _ => {
                let (target, session) = self.in_process(&self.workspace, HookNotes::Printed, screen).await?;
                Ok(PreparedTarget { session: Some(session), ..target })
            }
        }
    }

    async fn in_process(
        &self,
        flags: &WorkspaceFlags,
        notes: HookNotes,
        screen: &Screen,
    ) -> Result<(PreparedTarget, CommandSession), CliError> {
        let found = LocatedWorkspace::find_valid(flags, screen)?.trusting(self.trust);
        let session = CommandSession::start(&found).await?;
        if notes == HookNotes::Printed {
            found.note_problems(&session.report.diagnostics, &session.report.files, screen);
        }
        let target = InProcessTarget::new(session.orchestrator.clone(), session.workspace.clone());
        let prepared = PreparedTarget {
            target: BenchTarget::InProcess(target),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            hooks: format!("workspace {}", found.root.display()),
            largest: found.settings.limits.payload,
            cwd: None,
            session: None,
            scratch: None,
        };
        Ok((prepared, session))
    }

    async fn daemon(&self, scenario: &Scenario) -> Result<PreparedTarget, CliError> {
        if matches!(&scenario.hooks, ScenarioHooks::Inline(_)) {
            let what = "the scenario has hooks of its own, which a daemon does not run";
            return Err(CliError::with_help(what, "leave out `hooks`, or put the load on this process"));
        }
        let address = match &self.target.url {
            Some(url) => {
                let remote = self.target.allow_remote;
                let policy = if remote { RemotePolicy::Allowed } else { RemotePolicy::Refused };
                DaemonAddress::of_url(url, policy).await?
            }
            None => DaemonAddress::Socket(self.target.socket.client()),
        };
        let token = self.target.token_file.as_deref().map(DaemonToken::read).transpose()?;
        let target = DaemonTarget::new(address, token);
        let version = target.version().await.map_err(|gone| {
            CliError::with_help(gone, "start it with `hookyard serve`, or name it with `--socket` or `--url`")
        })?;
        let of_scenario = match &scenario.hooks {
            ScenarioHooks::Workspace(directory) => Some(directory),
            _ => None,
        };
        let directory = self.workspace.workspace.as_ref().or(of_scenario);
        let cwd = directory.map(|directory| absolute(directory)).transpose()?;
        let hooks = cwd.as_ref().map_or_else(
            || "those of the daemon".to_owned(),
            |directory| format!("those of the daemon for {}", directory.display()),
        );
        let largest = Settings::default().limits.payload;
        let target = match &self.target.lines {
            Some(socket) => BenchTarget::Lines(LinesTarget::new(target, socket)),
            None => BenchTarget::Daemon(target),
        };
        Ok(PreparedTarget { target, version, hooks, largest, cwd, session: None, scratch: None })
    }
}

/// A directory as a daemon knows it.
fn absolute(directory: &Path) -> Result<PathBuf, CliError> {
    directory.canonicalize().map_err(|error| {
        let name = escape::path(directory);
        CliError::new(format!("the workspace `{name}` cannot be used: {}", crate::model::io_reason(&error)))
    })
}

/// A name that no other call has.
fn label() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("bench-{:x}-{:x}", now.as_nanos(), std::process::id())
}

fn summary(scenario: &Scenario, recording: Option<&Path>, hooks: String) -> ScenarioSummary {
    let events = scenario.mix.iter().map(|share| ScenarioEvent {
        kind: share.kind.as_str().to_owned(),
        matched: share.matched.clone(),
        weight: share.weight,
        payload_bytes: [share.payload.least, share.payload.most],
    });
    ScenarioSummary {
        name: scenario.name.clone(),
        description: scenario.description.clone(),
        sessions: scenario.sessions,
        events_per_run: scenario.events_per_run.filter(|_| recording.is_none()),
        events: if recording.is_some() { Vec::new() } else { events.collect() },
        recording: recording.map(|file| file.to_string_lossy().into_owned()),
        hooks,
    }
}
