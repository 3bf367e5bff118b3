//! Decisions of before the start, from the end of the audit, so that a restart empties no page. A line has no payload.

use std::{
    fs::File,
    io::{self, ErrorKind, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tokio::task::spawn_blocking;

use crate::{
    FinishedEvent, RunRef,
    model::{
        ContentHash, DecisionId, DialectName, Ended, Event, EventId, EventKind, FailureMode, HandlerKind,
        HookName, HookReport, Outcome, Redactor, RunId, SessionId, Target, Timestamp, ToolCallId, TrustState,
        Verdict, WorkspaceId,
    },
    store::kept_name,
};

/// How much of the audit is read, in bytes.
const MOST_READ: u64 = 4 << 20;

/// What the audit has of decisions.
#[derive(Debug, Default)]
pub(in crate::daemon) struct FormerDecisions {
    /// The oldest first.
    pub(super) decisions: Vec<FinishedEvent>,
    /// How many lines were left out, since they are none of hookyard.
    damaged: usize,
}

/// What is read of a line. Others than those of decisions lack the run.
#[derive(Debug, Deserialize)]
struct ReadLine<'a> {
    at: String,
    workspace_id: Option<String>,
    session_id: Option<String>,
    run_id: Option<String>,
    decision_id: Option<String>,
    event: Option<String>,
    event_id: Option<String>,
    tool: Option<Arc<str>>,
    tool_call_id: Option<String>,
    verdict: Option<String>,
    by: Option<String>,
    reason: Option<Arc<str>>,
    #[serde(borrow)]
    patched: Option<&'a RawValue>,
    #[serde(default)]
    hooks: Vec<ReadHook>,
    #[serde(default)]
    snapshot_version: u64,
    snapshot: Option<Arc<str>>,
    client: Option<ReadClient>,
    #[serde(default)]
    accepted: bool,
}

#[derive(Debug, Deserialize)]
struct ReadHook {
    hook: String,
    handler: String,
    ended: String,
    trust: Option<String>,
    verdict: String,
    duration_ms: f64,
    #[serde(default)]
    queued_ms: f64,
    policy: Option<String>,
    error: Option<Arc<str>>,
    content: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ReadClient {
    dialect: String,
}

impl FormerDecisions {
    /// Reads the end of an audit and, if that is short, of the file before it.
    fn read(audit: &Path) -> io::Result<Self> {
        let last = end_of(audit, MOST_READ)?;
        let mut before = audit.as_os_str().to_owned();
        before.push(".1");
        let text = [end_of(&PathBuf::from(before), MOST_READ - last.len() as u64)?, last].concat();
        let mut former = Self::default();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let read = serde_json::from_slice::<ReadLine<'_>>(line).ok();
            if read.as_ref().is_some_and(|line| !line.has_decision()) {
                continue;
            }
            match read.and_then(decision) {
                Some(decision) => former.decisions.push(decision),
                None => former.damaged += 1,
            }
        }
        Ok(former)
    }
}

/// The decisions of before the start that an audit has. A start does not fail for want of them.
pub(in crate::daemon) async fn former_decisions(audit: PathBuf) -> FormerDecisions {
    let file = audit.clone();
    let read = spawn_blocking(move || FormerDecisions::read(&file)).await;
    let former = read.map_err(io::Error::other).flatten().unwrap_or_else(|error| {
        tracing::warn!(%error, audit = %audit.display(), "the history of decisions begins now: the audit cannot be read");
        FormerDecisions::default()
    });
    if former.damaged > 0 {
        let lines = former.damaged;
        tracing::warn!(lines, audit = %audit.display(), "damaged lines of the audit are not in the history of decisions");
    }
    former
}

/// The last whole lines of a file, if it is there.
fn end_of(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let start = file.metadata()?.len().saturating_sub(most);
    // One byte more says whether a line begins there.
    file.seek(SeekFrom::Start(start.saturating_sub(1)))?;
    let mut text = Vec::new();
    file.take(most + 1).read_to_end(&mut text)?;
    if start > 0 {
        let end = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1);
        text.drain(..end);
    }
    Ok(text)
}

impl ReadLine<'_> {
    /// Whether it is about a decision of hooks, and not about a request that was refused, say.
    fn has_decision(&self) -> bool {
        self.run_id.is_some() && !self.accepted
    }
}

/// The decision of a line, unless that has a word that hookyard does not write.
fn decision(line: ReadLine<'_>) -> Option<FinishedEvent> {
    let kind = EventKind::from_name(&line.event?)?;
    let (session_id, run_id) = (SessionId::new(line.session_id?).ok()?, RunId::new(line.run_id?).ok()?);
    let mut event = Event::new(kind, session_id.clone(), run_id.clone());
    let dialect = line.client?.dialect;
    event.dialect = DialectName::ALL.iter().copied().find(|name| name.as_str() == dialect)?;
    event.id = line.event_id.map(EventId::new).transpose().ok()?;
    event.tool_call_id = line.tool_call_id.map(ToolCallId::new).transpose().ok()?;
    event.attributes.tool_name = line.tool;
    let mut outcome = Outcome::proceed(decision_id(&line.decision_id?)?, kind, line.snapshot_version);
    outcome.verdict = verdict(&line.verdict?)?;
    outcome.by = line.by.map(HookName::new).transpose().ok()?;
    outcome.reason = line.reason;
    outcome.snapshot_content = line.snapshot;
    outcome.hooks = line.hooks.into_iter().map(report).collect::<Option<_>>()?;
    let former_changes = match line.patched {
        Some(patched) => changed(patched)?,
        None => Arc::default(),
    };
    Some(FinishedEvent {
        run: Arc::new(RunRef {
            workspace_id: WorkspaceId::new(line.workspace_id?).ok()?,
            session_id,
            run_id,
        }),
        event: Arc::new(event),
        outcome: Arc::new(outcome),
        at: Timestamp::parse(&line.at)?,
        // The audit has no secrets.
        redactor: Redactor::default(),
        former_changes: Some(former_changes),
    })
}

/// The parts that were changed: an audit has paths into them, or their values.
fn changed(patched: &RawValue) -> Option<Arc<[Target]>> {
    let paths = serde_json::from_str::<Vec<String>>(patched.get());
    let values = || serde_json::from_str::<Map<String, Value>>(patched.get());
    let names =
        paths.or_else(|_| values().map(|values| values.into_iter().map(|(name, _)| name).collect())).ok()?;
    let mut changed = Vec::new();
    for name in names {
        let name = name.trim_start_matches('/').split('/').next();
        let target = Target::ALL.into_iter().find(|target| Some(target.as_str()) == name)?;
        if !changed.contains(&target) {
            changed.push(target);
        }
    }
    Some(changed.into())
}

fn report(read: ReadHook) -> Option<HookReport> {
    let handler = HandlerKind::ALL.into_iter().find(|kind| kind.as_str() == read.handler)?;
    let ended = Ended::ALL.into_iter().find(|ended| ended.as_str() == read.ended)?;
    let mut report = HookReport::new(HookName::new(read.hook).ok()?, handler, ended);
    report.verdict = verdict(&read.verdict)?;
    report.duration = Duration::try_from_secs_f64(read.duration_ms / 1e3).ok()?;
    report.queued = Duration::try_from_secs_f64(read.queued_ms / 1e3).ok()?;
    report.trust = read.trust.and_then(|name| TrustState::ALL.into_iter().find(|it| it.as_str() == name));
    report.failure_mode = match read.policy.as_deref() {
        Some("fail_open") => Some(FailureMode::FailOpen),
        Some("fail_closed") => Some(FailureMode::FailClosed),
        _ => None,
    };
    report.error = read.error;
    report.content = read.content.map(|digits| Arc::new(ContentHash::new(digits)));
    Some(report)
}

fn verdict(name: &str) -> Option<Verdict> {
    Verdict::ALL.into_iter().find(|verdict| verdict.as_str() == name)
}

fn decision_id(text: &str) -> Option<DecisionId> {
    let (rest, number) = text.rsplit_once('-')?;
    let (node, process) = rest.rsplit_once('-').unwrap_or(("", rest));
    let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
    Some(DecisionId::new(hex(process)?, hex(number)?).of_node(kept_name(node)))
}
