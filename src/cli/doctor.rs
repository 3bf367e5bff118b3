//! `doctor`: what stands between agents and their hooks, and what to do about it. Runs no hook.

mod daemon;

use std::{collections::BTreeMap, path::Path};

use clap::Args;
use serde::Serialize;

use super::{
    connect::{
        AGENTS, AgentEntry, AgentProfile, AgentSettings, AgentSettingsFile, holds_back, is_below,
        is_executable, is_relay,
    },
    daemon_flag::{ServedWorkspace, SocketFlag},
    escape,
    exit::{CliError, CliResult, Exit},
    flags::{JsonFlag, WorkspaceFlags},
    paths::display_path,
    screen::Screen,
    serve_check,
    settings::{VariablePolicy, settings_of},
    status::agent_fact,
    units::{self, plural},
    workspace::LocatedWorkspace,
};
use crate::{
    config::{AgentConnection, ConnectionRecord, ConnectionStore, LoadedWorkspace, Settings, is_guard},
    daemon::{Client, DaemonStatus, StartFinding, StartFindingLevel},
    model::{CommandLine, Diagnostic, Handler, Hook, HostRuns, Severity},
    platform::LOST_PROMISES,
};

const FOOTER: &str = "\
Examples:
  hookyard doctor
  hookyard doctor --workspace ~/projects/shop
  hookyard doctor --json | jq -r '.findings[] | select(.level != \"ok\") | .message'

It looks at the daemon, at the agents that are connected and the entries in their settings, and at the hooks of the \
nearest workspace.

Exit codes: 0 all is well; 1 something is wrong, and each finding says what to do; 2 the checks could not run.";

/// Find out why hooks do not run as they should: daemon, agents, hooks and trust
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct DoctorCommand {
    #[command(flatten)]
    workspace: WorkspaceFlags,

    #[command(flatten)]
    socket: SocketFlag,

    #[command(flatten)]
    output: JsonFlag,
}

#[derive(Serialize)]
struct DoctorReport<'a> {
    errors: usize,
    warnings: usize,
    findings: &'a [StartFinding],
}

impl DoctorCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let findings = match self.findings() {
            Ok(findings) => findings,
            Err(error) => {
                screen.report(Err(error));
                return Ok(Exit::Usage);
            }
        };
        let count = |level| findings.iter().filter(|finding| finding.level == level).count();
        let errors = count(StartFindingLevel::Error);
        let warnings = count(StartFindingLevel::Warning);
        let is_well = errors + warnings == 0;
        if self.output.json {
            screen.print_json(&DoctorReport { errors, warnings, findings: &findings })?;
        } else {
            let verdict = if is_well { "all is well" } else { "something is wrong" };
            screen.print(&serve_check::view(&findings, verdict, screen))?;
        }
        Ok(if is_well { Exit::Done } else { Exit::Failed })
    }

    fn findings(&self) -> Result<Vec<StartFinding>, CliError> {
        let (settings, diagnostics) = settings_of(&self.workspace.settings, VariablePolicy::Ignored)?;
        let mut findings: Vec<StartFinding> =
            diagnostics.iter().map(|diagnostic| of_diagnostic("settings", diagnostic)).collect();
        let store = ConnectionStore::of(&settings, &|name| std::env::var(name).ok());
        let record = match &store {
            Some(store) => store.read().unwrap_or_else(|error| {
                let finding = StartFinding::error("connections", error.to_string());
                findings.push(finding.help("mend or remove it, and connect the agents again"));
                ConnectionRecord::default()
            }),
            None => ConnectionRecord::default(),
        };
        findings.extend(LOST_PROMISES.iter().map(|lost| StartFinding::note("system", *lost)));
        let loaded = LocatedWorkspace::find(&self.workspace).map(|found| found.load());
        let client = self.socket.interactive_client();
        let status: Result<DaemonStatus, _> = client.ask("GET", "/v1/status", None);
        findings.extend(daemon::findings(&client, &status, &record, store.as_ref()));
        let hooks = loaded.as_ref().map_or(&[][..], |loaded| &loaded.hooks);
        for agent in &AGENTS {
            let check =
                AgentCheck { agent, record: &record, client: &client, status: status.as_ref().ok(), hooks };
            findings.extend(check.findings());
        }
        match &loaded {
            Ok(loaded) => {
                findings.extend(workspace(loaded, &settings));
                findings.extend(unserved(loaded, (&record, &settings), &client));
            }
            // Whoever names a directory wants to know about it.
            Err(_) if self.workspace.workspace.is_some() => {
                LocatedWorkspace::find(&self.workspace)?;
            }
            Err(_) => findings.push(StartFinding::ok("workspace", "none here")),
        }
        Ok(findings)
    }
}

/// One agent, and what its check needs.
struct AgentCheck<'a> {
    agent: &'static AgentProfile,
    record: &'a ConnectionRecord,
    client: &'a Client,
    status: Option<&'a DaemonStatus>,
    /// The hooks of the workspace.
    hooks: &'a [Hook],
}

impl AgentCheck<'_> {
    fn findings(&self) -> Vec<StartFinding> {
        let name = self.agent.dialect.as_str();
        let installed = self.agent.find(&std::env::var_os("PATH").unwrap_or_default());
        let known: Vec<_> = self.record.connections.iter().filter(|known| known.agent == name).collect();
        let mut findings = Vec::new();
        if let Some(installed) = &installed {
            let version = installed.version.map(|version| format!(" {version}")).unwrap_or_default();
            let what = if known.is_empty() { "not connected" } else { "connected" };
            let text = format!("{}{version}, {}: {what}", self.agent.title, display_path(&installed.program));
            findings.push(StartFinding::ok(name, text));
        }
        for connection in &known {
            findings.extend(self.connection(connection));
        }
        if !known.is_empty()
            && let Some(status) = self.status
        {
            let last = status.agents.iter().find(|last| last.agent == name);
            let text = last.map_or_else(|| "no event since the daemon started".to_owned(), agent_fact);
            findings.push(StartFinding::ok(name, text));
        }
        for doubled in double_runs(self.hooks).iter().filter(|_| known.is_empty()) {
            if doubled.file_is_of(self.agent) {
                findings.push(of_diagnostic(name, &doubled.diagnostic));
            }
        }
        findings
    }

    /// What is wrong with a connection.
    fn connection(&self, connection: &AgentConnection) -> Vec<StartFinding> {
        let name = self.agent.dialect.as_str();
        let file = display_path(&connection.file);
        let again = connect_command(connection);
        // A variable may have moved it out of the home directory.
        let above = connection.file.parent().unwrap_or(&connection.root);
        let boundary = if above.starts_with(&connection.root) { &connection.root } else { above };
        let read = AgentSettingsFile::read(&connection.file, boundary);
        let settings = match read.map(|it| AgentSettings::read(self.agent, &it.path, it.bytes.as_deref())) {
            Ok(Ok(settings)) => settings,
            Ok(Err(error)) => {
                let text = format!("{file} {error}: the agent may run without hooks");
                return vec![StartFinding::error(name, text).help("correct it")];
            }
            Err(CliError::Message { what, help }) => {
                return vec![StartFinding { help, ..StartFinding::error(name, what) }];
            }
            Err(_) => return Vec::new(),
        };
        let entries = settings.entries(self.agent);
        if entries.is_empty() {
            let text = format!("{file} is recorded as connected, and has no entry of hookyard");
            return vec![StartFinding::error(name, text).help(format!("run `{again}`"))];
        }
        let mut findings = vec![StartFinding::ok(name, format!("{file}: {}", units::entries(entries.len())))];
        let absent = |event: &&String| entries.iter().all(|entry| entry.event != **event);
        let absent: Vec<&str> = connection.events.iter().filter(absent).map(String::as_str).collect();
        if !absent.is_empty() {
            let text = format!("{file} has lost its entries for {}", absent.join(", "));
            findings.push(StartFinding::error(name, text).help(format!("run `{again}`")));
        }
        if let Some(why) = settings.disabled_by(self.agent) {
            let text = format!("{why} in {file}: the agent does not run the entries of hookyard");
            findings.push(StartFinding::error(name, text).help("remove it"));
        }
        findings.extend(self.targets(&entries, &again));
        findings.extend(self.open_when_down(&entries, &again));
        findings
    }

    /// Entries that let the agent go on without a daemon, though hooks of the workspace guard these events.
    fn open_when_down(&self, entries: &[AgentEntry], again: &str) -> Option<StartFinding> {
        let native = self.agent.native()?;
        let kind_of = |event: &str| native.events().find(|(name, _)| *name == event).map(|(_, kind)| kind);
        let kinds = entries.iter().filter(|entry| !entry.blocks_when_down());
        let kinds: Vec<_> =
            kinds.filter_map(|entry| kind_of(&entry.event)).filter(|kind| holds_back(*kind)).collect();
        let runs_here = |hook: &&Hook| hook.enabled && !hook.execution.host_runs.is_by_agent();
        let guards = self.hooks.iter().filter(runs_here).filter(|hook| is_guard(hook));
        let mut unguarded = guards.filter(|hook| kinds.iter().any(|kind| hook.events.contains(*kind)));
        let guard = &unguarded.next()?.name;
        let more = unguarded.count();
        let more = if more == 0 { String::new() } else { format!(" and {} more", plural(more, "hook")) };
        let text = format!(
            "without a daemon, {} goes on past the guard {guard}{more}: its entries say `--if-down allow`",
            self.agent.title
        );
        let name = self.agent.dialect.as_str();
        Some(StartFinding::warning(name, text).help(format!("run `{again}`, which blocks instead")))
    }

    /// Entries that lead nowhere.
    fn targets(&self, entries: &[AgentEntry], again: &str) -> Vec<StartFinding> {
        let name = self.agent.dialect.as_str();
        let mut programs: BTreeMap<&Path, usize> = BTreeMap::new();
        let mut sockets: BTreeMap<&Path, usize> = BTreeMap::new();
        for entry in entries {
            entry.program().into_iter().for_each(|program| *programs.entry(program).or_default() += 1);
            entry.socket().into_iter().for_each(|socket| *sockets.entry(socket).or_default() += 1);
        }
        let gone =
            programs.into_iter().filter(|(program, _)| program.is_absolute() && !is_executable(program));
        let mut findings: Vec<StartFinding> = gone
            .map(|(program, count)| {
                let text = format!("{} run {}, which is gone", units::entries(count), escape::path(program));
                StartFinding::error(name, text).help(format!("run `{again}`"))
            })
            .collect();
        let others = sockets.into_iter().filter(|(socket, _)| *socket != self.client.socket());
        findings.extend(others.filter_map(|(socket, count)| {
            let answer = Client::new(socket).timeout(OTHER_SOCKET_TIMEOUT).send("GET", "/healthz", None);
            let error = answer.err()?;
            let text = format!("{} lead nowhere: {error}", units::entries(count));
            Some(StartFinding::error(name, text).help(format!("start that daemon, or run `{again}`")))
        }));
        findings
    }
}

/// The command that makes a connection again.
fn connect_command(connection: &AgentConnection) -> String {
    let place = match connection.reach {
        crate::config::ConnectionReach::User => String::new(),
        crate::config::ConnectionReach::Project => {
            format!(" --project {}", super::paths::shell_quoted(&connection.root))
        }
    };
    format!("hookyard connect {}{place}", connection.agent)
}

/// How long the daemon of another socket may take.
const OTHER_SOCKET_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(2);

/// The hooks of an agent's settings that run twice for its events.
pub(super) struct DoubleRun<'a> {
    hook: &'a Hook,
    pub(super) diagnostic: Diagnostic,
}

impl DoubleRun<'_> {
    fn file_is_of(&self, agent: &AgentProfile) -> bool {
        self.hook.dialect.name() == agent.dialect
    }
}

/// Finds agents whose settings pass events to hookyard, and have hooks that both run: one finding for each agent.
pub(super) fn double_runs(hooks: &[Hook]) -> Vec<DoubleRun<'_>> {
    let runs_here = |hook: &&Hook| hook.enabled && hook.execution.host_runs == HostRuns::Never;
    let is_entry = |hook: &Hook| match &hook.handler {
        Handler::Command(command) => match &command.line {
            CommandLine::Shell(line) => is_relay(line, hook.dialect.name().as_str()),
            CommandLine::Exec { .. } => false,
        },
        _ => false,
    };
    let mut found: Vec<DoubleRun<'_>> = Vec::new();
    for entry in hooks.iter().filter(runs_here).filter(|hook| is_entry(hook)) {
        let agent = entry.dialect.name();
        let is_twin = |hook: &&Hook| hook.dialect.name() == agent && !is_entry(hook);
        let twins = hooks.iter().filter(runs_here).filter(is_twin).count();
        let is_known = found.iter().any(|known| known.hook.dialect.name() == agent);
        let Some(file) = entry.source.file.as_deref().filter(|_| twins > 0 && !is_known) else { continue };
        let hooks = plural(twins, "hook");
        let message = format!(
            "{hooks} of the settings of {agent} run twice: {agent} runs them, and passes its events to hookyard"
        );
        let diagnostic = Diagnostic::of_file(Severity::Warning, "runs-twice", file, message);
        let help = format!("run `hookyard connect {agent}`: hookyard then leaves them to the agent");
        found.push(DoubleRun {
            hook: entry,
            diagnostic: Diagnostic { line: entry.source.line, column: 1, ..diagnostic.help(help) },
        });
    }
    found
}

/// A workspace whose hooks run for no event of the connected agents, because the daemon does not serve it.
fn unserved(
    loaded: &LoadedWorkspace,
    (record, settings): (&ConnectionRecord, &Settings),
    client: &Client,
) -> Option<StartFinding> {
    let root = &loaded.workspace.root;
    let runs_here = |hook: &Hook| hook.enabled && !hook.execution.host_runs.is_by_agent();
    let reaching =
        record.connections.iter().filter(|known| known.is_user_wide() || is_below(root, &known.root));
    let mut agents: Vec<&str> = reaching.map(|known| &*known.agent).collect();
    agents.dedup();
    if agents.is_empty() || !loaded.hooks.iter().any(runs_here) {
        return None;
    }
    let registered = ServedWorkspace::all(client).unwrap_or_default();
    let declared = settings.workspaces.values().map(|declared| declared.root.clone());
    let roots = record.roots().into_iter().chain(settings.workspace_roots.clone()).chain(declared);
    let mut served = roots.chain(registered.into_iter().map(|known| known.root.into()));
    if served.any(|served| is_below(root, &served)) {
        return None;
    }
    let agents = agents.join(", ");
    let text = format!(
        "{}: its hooks do not run for events of {agents}: the daemon does not serve this directory",
        display_path(root)
    );
    let help = format!(
        "run `hookyard connect {}` there, or add it to `workspace_roots`",
        &record.connections[0].agent
    );
    Some(StartFinding::error("workspace", text).help(help))
}

/// What is wrong with the hooks of a workspace, and what is trusted.
fn workspace(loaded: &LoadedWorkspace, settings: &Settings) -> Vec<StartFinding> {
    const SUBJECT: &str = "workspace";
    let mut findings = Vec::new();
    let root = display_path(&loaded.workspace.root);
    let own: Vec<HostRuns> = loaded.hooks.iter().map(|hook| hook.execution.host_runs).collect();
    let own: Vec<HostRuns> = own.into_iter().filter(|runs| *runs != HostRuns::Entry).collect();
    let left = own.iter().filter(|runs| runs.is_by_agent()).count();
    let left = if left == 0 { String::new() } else { format!(", {left} of them run by their agent") };
    let hooks = plural(own.len(), "hook");
    findings.push(StartFinding::ok(SUBJECT, format!("{root}: {hooks}{left}")));
    let problems = loaded.diagnostics.iter().filter(|known| known.severity != Severity::Info);
    findings.extend(
        problems.filter(|known| known.code != Diagnostic::TRUST).map(|known| of_diagnostic(SUBJECT, known)),
    );
    let remarks = loaded.diagnostics.iter().filter(|known| known.severity == Severity::Info);
    let remarks = remarks.filter(|known| known.code == Diagnostic::BUNDLE);
    findings.extend(remarks.map(|known| of_diagnostic("bundle", known)));
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    for hook in &loaded.hooks {
        if let Some(state) = hook.trust.state() {
            *states.entry(state.as_str()).or_default() += 1;
        }
        let runs_here = hook.enabled && !hook.execution.host_runs.is_by_agent();
        if let Some(why) = hook.trust.refusal().filter(|_| runs_here && hook.source.bundle.is_none()) {
            let text = format!("hook {} does not run: {why}", hook.name);
            let directory = super::paths::shell_quoted(&loaded.workspace.root);
            let help = format!("run `hookyard trust --workspace {directory}`");
            let help = Some(help).filter(|_| !why.contains("run `hookyard trust"));
            findings.push(StartFinding { help, ..StartFinding::error("trust", text) });
        }
    }
    let states: Vec<String> = states.into_iter().map(|(state, count)| format!("{count} {state}")).collect();
    let text =
        if settings.trust == crate::config::TrustPolicy::Off { "off".to_owned() } else { states.join(", ") };
    if !text.is_empty() {
        let is_refused = loaded.hooks.iter().any(|hook| hook.trust.refusal().is_some());
        let summary = if is_refused { StartFinding::warning } else { StartFinding::ok };
        findings.push(summary("trust", text));
    }
    findings
}

fn of_diagnostic(subject: &str, diagnostic: &Diagnostic) -> StartFinding {
    // The finding has the help beside it.
    let message = Diagnostic { help: None, ..diagnostic.clone() }.to_string();
    let finding = match diagnostic.severity {
        Severity::Error => StartFinding::error(subject, message),
        Severity::Warning => StartFinding::warning(subject, message),
        Severity::Info => StartFinding::ok(subject, message),
    };
    StartFinding { help: diagnostic.help.clone(), ..finding }
}
