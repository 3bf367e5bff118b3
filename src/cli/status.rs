//! `status`: show daemon status.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;

use super::{
    daemon_flag::SocketFlag,
    escape,
    exit::{CliResult, Exit},
    flags::JsonFlag,
    paint::Paint,
    screen::Screen,
    table::Page,
    units::{byte_size, coarse_duration, plural, plural_u64},
};
use crate::{
    daemon::{
        AgentStatus, AuditStatus, BundleStatus, ClusterStatus, ClusterStoreStatus, DaemonStatus, DataStatus,
        LastGoodFile, ShippingStatus,
    },
    model::Timestamp,
};

/// How many digits of a hash are shown.
const SHOWN_DIGITS: usize = 12;

const FOOTER: &str = "\
Examples:
  hookyard status
  hookyard status --json | jq .active_runs

Exit codes: 0 the daemon is up, though hook files may have errors; 1 it is down.";

/// Show daemon status
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct StatusCommand {
    #[command(flatten)]
    socket: SocketFlag,

    #[command(flatten)]
    output: JsonFlag,
}

impl StatusCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let status: DaemonStatus = self.socket.interactive_client().ask("GET", "/v1/status", None)?;
        if self.output.json {
            screen.print_json(&status)?;
        } else {
            screen.print(&view(&status, screen.out.paint))?;
        }
        Ok(Exit::Done)
    }
}

fn view(status: &DaemonStatus, paint: Paint) -> String {
    let mut page = Page::default();
    for (name, value) in facts(status) {
        page.line(&format!("{}  {}", paint.dim(&format!("{name:<10}")), escape::line(&value)));
    }
    if let Some(data) = status.data.as_ref().filter(|data| data.former_gone) {
        let effect = "its file was gone when the daemon started, and halts in it are forgotten";
        page.line(&format!("{} in {}: {effect}", paint.red("run state"), escape::line(&data.directory)));
    }
    for broken in &status.broken {
        let errors = plural(broken.errors, "error");
        page.line(&format!("{} {}: {errors}", paint.red("broken"), escape::line(&broken.id)));
        page.line(&format!("  {}", escape::line(&broken.first)));
        for file in &broken.last_good {
            page.line(&format!("  {}", escape::line(&last_good_fact(file))));
        }
    }
    for workspace in &status.not_loaded {
        let place = format!("{} at {}", workspace.id, workspace.root);
        page.line(&format!("{} {}: its events are refused", paint.red("not loaded"), escape::line(&place)));
        page.line(&format!("  {}", escape::line(&workspace.why)));
    }
    for error in &status.token_errors {
        page.line(&format!("{} {}", paint.red("token"), escape::line(error)));
    }
    for missing in &status.required_missing {
        let place = format!("{} in {}", missing.hook, missing.workspace);
        page.line(&format!("{} {}: not in force", paint.red("required"), escape::line(&place)));
        page.line(&format!("  {}", escape::line(&missing.why)));
    }
    for degraded in &status.degraded_workers {
        let place = format!("{} in {}", degraded.hook, degraded.workspace);
        let effect = match degraded.reason.as_str() {
            "no_hello" => "no worker said hello; each event gets a process",
            _ => "its workers end again and again",
        };
        page.line(&format!("{} {}: {effect}", paint.yellow("degraded"), escape::line(&place)));
        page.line(&format!("  {}", escape::line(&degraded.why)));
    }
    for hook in &status.not_trusted {
        let place = format!("{} in {}", hook.hook, hook.workspace);
        let state = paint.yellow(&escape::line(&hook.state));
        page.line(&format!("{state} {}: does not run", escape::line(&place)));
    }
    for powerless in &status.powerless_switches {
        let keys = plural(powerless.switches, "key");
        page.line(&format!(
            "{} {}: {keys} without effect",
            paint.yellow("levels"),
            escape::line(&powerless.id)
        ));
        page.line(&format!("  {}", escape::line(&powerless.first)));
    }
    page.into_text()
}

/// What becomes of the rules of a broken file.
pub(super) fn last_good_fact(known: &LastGoodFile) -> String {
    let fate = if known.policy == "deny" {
        "has its events blocked; its last good rules are not in force"
    } else {
        "keeps its last good rules"
    };
    let digits = known.sha256.as_deref().map(|sha256| sha256.get(..SHOWN_DIGITS).unwrap_or(sha256));
    let since = known.since.map(|seconds| Timestamp::of(UNIX_EPOCH + Duration::from_secs(seconds)));
    match digits.zip(since) {
        Some((digits, since)) => format!("{} {fate} ({digits}, of {since})", known.file),
        None => format!("{} {fate}", known.file),
    }
}

/// What there is to say about a daemon, each with its label.
fn facts(status: &DaemonStatus) -> Vec<(&'static str, String)> {
    let up = coarse_duration(Duration::from_millis(status.uptime_ms));
    let tcp = status.tcp.as_ref().map(|address| format!(" and http://{address}")).unwrap_or_default();
    let lines = status.lines.as_ref().map(|path| format!(", lines at {path}")).unwrap_or_default();
    let metrics = status.metrics.as_ref();
    let metrics = metrics.map(|address| format!(", metrics at http://{address}/metrics")).unwrap_or_default();
    let workspaces = plural(status.workspaces, "workspace");
    let hooks = plural(status.hooks, "hook");
    let events = plural(status.events_in_flight, "event");
    let runs = plural(status.runs, "run");
    let mut facts = vec![
        (
            "hookyard",
            format!("{} {}, pid {}, up {up}, node {}", status.version, status.phase, status.pid, status.node),
        ),
        ("listens", format!("{}{lines}{tcp}{metrics}", status.socket)),
        ("serves", format!("{workspaces} with {hooks}; watching their files: {}", status.watch)),
        ("works on", format!("{events} in flight; {runs} known, {} active", status.active_runs)),
    ];
    if !status.agents.is_empty() {
        facts.push(("agents", agents_fact(&status.agents)));
    }
    if !status.trust.is_empty() {
        let counts: Vec<String> =
            status.trust.iter().map(|(state, number)| format!("{number} {state}")).collect();
        facts.push(("trust", counts.join(", ")));
    }
    if let Some(audit) = &status.audit {
        facts.push(("audit", audit_fact(audit)));
        facts.extend(audit.shipping.as_ref().map(|shipping| ("shipping", shipping_fact(shipping))));
    }
    if let Some(bundle) = &status.bundle {
        facts.push(("bundle", bundle_fact(bundle)));
    }
    if let Some(cluster) = &status.cluster {
        facts.push(("cluster", cluster_fact(cluster)));
    }
    facts.push(("run state", data_fact(status.data.as_ref())));
    if let Some(data) = &status.data {
        facts.push(("outbox", outbox_fact(data)));
    }
    facts
}

/// The agents that reach the daemon, each with its last event.
fn agents_fact(agents: &[AgentStatus]) -> String {
    let shown = agents.iter().map(|agent| format!("{} {}", agent.agent, agent_fact(agent)));
    shown.collect::<Vec<_>>().join(", ")
}

/// The last event of an agent.
pub(super) fn agent_fact(agent: &AgentStatus) -> String {
    let at = UNIX_EPOCH + Duration::from_secs(agent.last_at);
    let ago = SystemTime::now().duration_since(at).unwrap_or_default().max(Duration::from_secs(1));
    format!("{} {} ago", agent.last_event, coarse_duration(ago))
}

/// The signed bundle: what is in force, and what came of asking for a newer one.
fn bundle_fact(bundle: &BundleStatus) -> String {
    let at = |seconds: u64| {
        let at = UNIX_EPOCH + Duration::from_secs(seconds);
        coarse_duration(SystemTime::now().duration_since(at).unwrap_or_default().max(Duration::from_secs(1)))
    };
    let what = match (&bundle.name, bundle.version) {
        (Some(name), Some(version)) => {
            let hooks = plural(bundle.hooks, "hook");
            let expires = bundle.expires.as_deref().unwrap_or("never");
            format!("{name} {version} at level managed: {hooks}, {}, expires {expires}", bundle.standing)
        }
        _ => format!("none that can be used ({}), so events are {}", bundle.standing, bundle.effect()),
    };
    let server = match (&bundle.server, &bundle.last_poll, bundle.last_poll_at) {
        (Some(server), Some(result), Some(when)) => format!("; {server} asked {} ago: {result}", at(when)),
        (Some(server), ..) => format!("; {server} was not asked yet"),
        (None, ..) => String::new(),
    };
    let error = bundle.error.as_ref().map(|error| format!("; {}", escape::line(error))).unwrap_or_default();
    let changes = bundle.last_copy_change.as_ref().map(|last| {
        let times = plural(usize::try_from(bundle.copy_changes).unwrap_or(usize::MAX), "change");
        format!("; {times} of its files on this disk, the last: {}", escape::line(last))
    });
    format!("{what}{server}{error}{}", changes.unwrap_or_default())
}

/// What a node says of itself.
fn cluster_fact(cluster: &ClusterStatus) -> String {
    let named_by = match cluster.named_by.as_str() {
        "settings" => "",
        _ => ", named after its machine: set `node`",
    };
    let store = match &cluster.store {
        None => "; halts are its own".to_owned(),
        Some(store) => format!("; {}", store_fact(store)),
    };
    format!("a node{named_by}; takes events whose requests name run and workspace{store}")
}

/// How the store is in which nodes share halts.
fn store_fact(store: &ClusterStoreStatus) -> String {
    let heard = match store.heard_ms {
        None => "never heard of".to_owned(),
        Some(heard) => format!("heard of {} ago", coarse_duration(Duration::from_millis(heard))),
    };
    let fresh = if store.fresh { "knows all halts" } else { "may miss halts of other nodes" };
    let unstored = if store.unstored > 0 {
        format!(", {} of its own not stored", store.unstored)
    } else {
        String::new()
    };
    let error = store.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    format!("{fresh}, {}{unstored}, store {heard}{error}", plural(store.halts, "halt"))
}

fn data_fact(data: Option<&DataStatus>) -> String {
    let Some(data) = data else { return "in memory only; a restart forgets it".to_owned() };
    let restored = plural(data.restored, "run");
    let failing = data.error.as_ref().map(|error| {
        let (runs, halted) = (plural(data.unsaved, "run"), data.unsaved_halts);
        format!("; cannot be written: {error}; a restart would forget {runs}, {halted} of them halted")
    });
    format!("in {}; {restored} restored{}", data.directory, failing.unwrap_or_default())
}

/// What is not delivered yet, or not any more.
fn outbox_fact(data: &DataStatus) -> String {
    let undelivered = plural(data.undelivered, "event");
    let oldest = data.oldest_undelivered_ms.map(Duration::from_millis);
    let oldest = oldest.map(|age| format!(", the oldest {} ago", coarse_duration(age))).unwrap_or_default();
    let dead = match data.dead_letters {
        0 => String::new(),
        dead => format!("; {}: see `hookyard outbox list`", plural(dead, "dead letter")),
    };
    format!("{undelivered} to deliver{oldest}{dead}")
}

fn shipping_fact(shipping: &ShippingStatus) -> String {
    let ShippingStatus { to, shipped, waiting, waiting_bytes, dropped, error, .. } = shipping;
    let lost = if *dropped == 0 { String::new() } else { format!("; {dropped} lost") };
    let error = error.as_ref().map(|why| format!("; not taken: {}", escape::line(why))).unwrap_or_default();
    format!(
        "{} to {to}, {waiting} waiting ({}){lost}{error}",
        plural_u64(*shipped, "line"),
        byte_size(usize::try_from(*waiting_bytes).unwrap_or(usize::MAX))
    )
}

fn audit_fact(audit: &AuditStatus) -> String {
    let AuditStatus { to, written, dropped_queue, dropped_write, .. } = audit;
    let lines = plural(usize::try_from(*written).unwrap_or(usize::MAX), "line");
    let lost = match dropped_queue + dropped_write {
        0 => String::new(),
        lost => format!("; {lost} lost, {dropped_queue} of them because the queue was full"),
    };
    format!("{lines} in {to}{lost}")
}
