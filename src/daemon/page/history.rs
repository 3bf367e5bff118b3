//! The last decisions, in memory: those that stopped something or had a hook that failed, and apart from them all others,
//! so that many that went well push out none that did not. Without the page, only the first are kept, and no payload.

use std::{
    cmp::Reverse,
    collections::VecDeque,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;

use super::{
    decision::{DecisionDetails, DecisionEvent, DecisionPayload, DecisionSummary, brief},
    decision_trace::DecisionTrace,
    former::FormerDecisions,
    rule_trial::{MOST_EVENTS, RuleTrial, RuleTrialView},
};
use crate::{
    FinishedEvent, OutcomeObserver,
    model::{HookReport, Targets, Verdict, WorkspaceId},
    registry::Snapshot,
};

/// How many decisions of each sort are kept.
const MOST_DECISIONS: usize = 2000;

/// The memory that those of each sort may take, in bytes.
const MOST_BYTES: usize = 16 << 20;

/// The approximate memory of a decision without its payload, and of the report of a hook, in bytes.
const BASE_BYTES: usize = 2048;
const REPORT_BYTES: usize = 512;

/// The largest decision that is kept with its payload, in bytes: a few large ones must not push out all others.
const LARGEST: usize = 1 << 20;

/// How many notes of a large decision are kept.
const MOST_NOTES: usize = 16;

/// The last decisions of a daemon.
#[derive(Debug)]
pub(in crate::daemon) struct DecisionHistory {
    scope: HistoryScope,
    /// Those that stopped something or had a hook that failed.
    notable: Mutex<Ring>,
    others: Mutex<Ring>,
    /// Held while a rule is tried.
    trial: Mutex<()>,
}

/// Which decisions are kept, and what of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::daemon) enum HistoryScope {
    /// All, with the payloads of their events: for the page.
    All,
    /// Those that stopped something or had a hook that failed, without payloads.
    Notable,
}

/// The decisions that were asked for.
#[derive(Debug)]
pub(in crate::daemon) struct FoundDecisions {
    /// The newest first.
    pub(in crate::daemon) decisions: Vec<DecisionSummary>,
    /// How many more there are.
    pub(in crate::daemon) left_out: usize,
    /// The moment since which none was pushed out.
    pub(in crate::daemon) since: SystemTime,
}

/// A rule is tried already.
#[derive(Debug)]
pub(in crate::daemon) struct TrialUnderWay;

#[derive(Debug)]
struct Ring {
    kept: VecDeque<(FinishedEvent, usize)>,
    bytes: usize,
    /// The moment of the last one that was pushed out; before there is one, that of the start.
    since: SystemTime,
}

/// Which decisions are asked for.
#[derive(Debug, Default)]
pub(in crate::daemon) struct DecisionFilter {
    pub(in crate::daemon) workspace: Option<WorkspaceId>,
    pub(in crate::daemon) run: Option<String>,
    pub(in crate::daemon) tool: Option<String>,
    pub(in crate::daemon) hook: Option<String>,
    pub(in crate::daemon) verdict: Option<Verdict>,
    /// Only those with a hook that failed.
    pub(in crate::daemon) failed: bool,
    /// Only those that stopped something or had a hook that failed.
    pub(in crate::daemon) notable: bool,
    /// Only those at this moment or later.
    pub(in crate::daemon) since: Option<Duration>,
    /// Only those before this moment.
    pub(in crate::daemon) until: Option<Duration>,
}

impl DecisionHistory {
    /// A history that begins now.
    pub(in crate::daemon) fn new(scope: HistoryScope) -> Self {
        let ring = || Mutex::new(Ring { kept: VecDeque::new(), bytes: 0, since: SystemTime::now() });
        Self { scope, notable: ring(), others: ring(), trial: Mutex::default() }
    }

    /// Adds decisions of before the start, as far as there is room.
    pub(in crate::daemon) fn restore(&self, former: FormerDecisions) {
        let Some(since) = former.decisions.first().map(|oldest| oldest.at) else { return };
        let (notable, others) = former.decisions.into_iter().partition(is_notable);
        self.notable.lock().restore(notable, since);
        self.others.lock().restore(others, since);
    }

    /// Which decisions it keeps.
    pub(in crate::daemon) fn scope(&self) -> HistoryScope {
        self.scope
    }

    /// The decisions that were asked for.
    pub(in crate::daemon) fn list(&self, filter: &DecisionFilter, limit: usize) -> FoundDecisions {
        let mut since = self.notable.lock().since;
        if self.scope == HistoryScope::All && !filter.notable {
            since = since.max(self.others.lock().since);
        }
        let mut found = self.matching(filter);
        found.sort_by_key(|finished| Reverse(finished.at));
        let left_out = found.len().saturating_sub(limit);
        found.truncate(limit);
        // Texts are only freed of secrets where they are shown.
        FoundDecisions { decisions: found.iter().map(DecisionSummary::of).collect(), left_out, since }
    }

    /// One decision with what each hook did.
    pub(in crate::daemon) fn details(&self, id: &str) -> Option<DecisionDetails> {
        self.find(id).as_ref().map(DecisionDetails::of)
    }

    /// Its event in the canonical format.
    pub(in crate::daemon) fn event(&self, id: &str) -> Option<DecisionEvent> {
        self.find(id).as_ref().map(DecisionEvent::of)
    }

    /// The payload of its event, as it was sent and as hooks have changed it.
    pub(in crate::daemon) fn payload(&self, id: &str) -> Option<DecisionPayload> {
        self.find(id).as_ref().map(DecisionPayload::of)
    }

    /// What its hooks were told, by the hooks that its workspace has now.
    pub(in crate::daemon) fn trace(
        &self,
        id: &str,
        snapshot: impl FnOnce(&WorkspaceId) -> Option<Arc<Snapshot>>,
    ) -> Option<DecisionTrace> {
        let finished = self.find(id)?;
        Some(DecisionTrace::of(&finished, snapshot(&finished.run.workspace_id).as_deref()))
    }

    /// What a rule would have decided about the last events of its workspace, oldest first. `make` has it made when nobody else
    /// tries one.
    pub(in crate::daemon) fn try_rule<E>(
        &self,
        make: impl FnOnce() -> Result<RuleTrial, E>,
    ) -> Result<Result<RuleTrialView, E>, TrialUnderWay> {
        let _alone = self.trial.try_lock().ok_or(TrialUnderWay)?;
        Ok(make().map(|trial| {
            let workspace = Some(trial.snapshot.workspace().id.clone());
            let filter = DecisionFilter { workspace, ..DecisionFilter::default() };
            trial.run(&self.last(&filter, MOST_EVENTS))
        }))
    }

    /// The last events that were asked for, oldest first.
    fn last(&self, filter: &DecisionFilter, most: usize) -> Vec<FinishedEvent> {
        let mut found = self.matching(filter);
        found.sort_by_key(|finished| finished.at);
        found.drain(..found.len().saturating_sub(most));
        found
    }

    fn matching(&self, filter: &DecisionFilter) -> Vec<FinishedEvent> {
        let mut found = self.notable.lock().matching(filter);
        found.extend(self.others.lock().matching(filter));
        found
    }

    fn find(&self, id: &str) -> Option<FinishedEvent> {
        let notable = self.notable.lock().find(id);
        notable.or_else(|| self.others.lock().find(id))
    }
}

impl OutcomeObserver for DecisionHistory {
    fn event_finished(&self, finished: FinishedEvent) {
        let (ring, finished) = match (self.scope, is_notable(&finished)) {
            (HistoryScope::All, true) => (&self.notable, finished),
            (HistoryScope::All, false) => (&self.others, finished),
            (HistoryScope::Notable, true) => (&self.notable, without_texts(&finished)),
            (HistoryScope::Notable, false) => return,
        };
        // Freed after the lock: a large payload takes a while.
        let _gone = ring.lock().push(finished);
    }
}

impl Ring {
    fn push(&mut self, mut finished: FinishedEvent) -> Vec<FinishedEvent> {
        let mut gone = Vec::new();
        let mut bytes = weight(&finished);
        let lighter: [fn(&FinishedEvent) -> FinishedEvent; 2] = [without_values, without_texts];
        for make_lighter in lighter {
            if bytes <= LARGEST {
                break;
            }
            let whole = finished;
            finished = make_lighter(&whole);
            gone.push(whole);
            bytes = weight(&finished);
        }
        self.kept.push_back((finished, bytes));
        self.bytes += bytes;
        while self.kept.len() > MOST_DECISIONS || self.bytes > MOST_BYTES {
            let Some((oldest, bytes)) = self.kept.pop_front() else { break };
            self.bytes -= bytes;
            self.since = self.since.max(oldest.at);
            gone.push(oldest);
        }
        gone
    }

    /// Puts older ones, all since a moment, before those that it has.
    fn restore(&mut self, former: Vec<FinishedEvent>, since: SystemTime) {
        self.since = since;
        for former in former.into_iter().rev() {
            let former = without_texts(&former);
            let bytes = weight(&former);
            if self.kept.len() == MOST_DECISIONS || self.bytes + bytes > MOST_BYTES {
                self.since = former.at;
                return;
            }
            self.bytes += bytes;
            self.kept.push_front((former, bytes));
        }
    }

    fn matching(&self, filter: &DecisionFilter) -> Vec<FinishedEvent> {
        self.kept
            .iter()
            .map(|(finished, _)| finished)
            .filter(|finished| filter.wants(finished))
            .cloned()
            .collect()
    }

    fn find(&self, id: &str) -> Option<FinishedEvent> {
        let is_it = |(finished, _): &&(FinishedEvent, usize)| finished.outcome.decision_id.to_string() == id;
        self.kept.iter().rev().find(is_it).map(|(finished, _)| finished.clone())
    }
}

impl DecisionFilter {
    fn wants(&self, finished: &FinishedEvent) -> bool {
        let FinishedEvent { run, event, outcome, at, .. } = finished;
        let at = at.duration_since(UNIX_EPOCH).unwrap_or_default();
        let tool = event.attributes.tool_name.as_deref();
        self.workspace.as_ref().is_none_or(|wanted| *wanted == run.workspace_id)
            && self
                .run
                .as_ref()
                .is_none_or(|wanted| *wanted == run.run_id.as_str() || *wanted == run.session_id.as_str())
            && self.tool.as_deref().is_none_or(|wanted| tool == Some(wanted))
            && self
                .hook
                .as_ref()
                .is_none_or(|wanted| outcome.hooks.iter().any(|report| report.hook.as_str() == wanted))
            && self.verdict.is_none_or(|wanted| wanted == outcome.verdict)
            && (!self.failed || has_failed(finished))
            && (!self.notable || is_notable(finished))
            && self.since.is_none_or(|since| at >= since)
            && self.until.is_none_or(|until| at < until)
    }
}

fn is_notable(finished: &FinishedEvent) -> bool {
    matches!(finished.outcome.verdict, Verdict::Ask | Verdict::Block | Verdict::Halt) || has_failed(finished)
}

fn has_failed(finished: &FinishedEvent) -> bool {
    finished.outcome.hooks.iter().any(|report| report.ended.is_failure())
}

/// The approximate memory that is kept for a decision, in bytes.
fn weight(finished: &FinishedEvent) -> usize {
    let FinishedEvent { event, outcome, .. } = finished;
    let extra: usize = event.extra.iter().map(|(name, json)| name.len() + json.as_str().len()).sum();
    let notes: usize = outcome.notes.iter().map(|note| note.text.len()).sum();
    let reports: usize = outcome.hooks.iter().map(report_bytes).sum();
    let reason = outcome.reason.as_ref().map_or(0, |reason| reason.len());
    let attributes: usize = event.attributes.message.as_ref().map_or(0, |message| message.len());
    let payload = json_bytes(&event.targets) + json_bytes(&outcome.patched) + extra;
    BASE_BYTES + payload + notes + reports + reason + attributes
}

fn report_bytes(report: &HookReport) -> usize {
    let warnings: usize = report.warnings.iter().map(String::len).sum();
    REPORT_BYTES
        + warnings
        + report.values.as_deref().map_or(0, json_bytes)
        + report.error.as_ref().map_or(0, |error| error.len())
}

/// A decision without what each of its hooks made of the payload.
fn without_values(finished: &FinishedEvent) -> FinishedEvent {
    let mut outcome = (*finished.outcome).clone();
    for report in &mut outcome.hooks {
        report.values = None;
    }
    FinishedEvent { outcome: Arc::new(outcome), ..finished.clone() }
}

/// A decision without its payload, and with the beginnings of its texts. These are free of secrets before they are cut: half of
/// one would not be found.
fn without_texts(finished: &FinishedEvent) -> FinishedEvent {
    let beginning = |text: &str| brief(&finished.redactor.text(text)).to_owned();
    let mut event = (*finished.event).clone();
    event.targets = Targets::default();
    event.extra.clear();
    event.attributes.message = None;
    let mut outcome = (*finished.outcome).clone();
    outcome.patched = Targets::default();
    outcome.reason = outcome.reason.map(|reason| beginning(&reason).into());
    outcome.notes.truncate(MOST_NOTES);
    for note in &mut outcome.notes {
        note.text = beginning(&note.text).into();
    }
    for report in &mut outcome.hooks {
        report.warnings.clear();
        report.values = None;
        report.error = report.error.take().map(|error| beginning(&error).into());
    }
    FinishedEvent { event: Arc::new(event), outcome: Arc::new(outcome), ..finished.clone() }
}

fn json_bytes(targets: &Targets) -> usize {
    targets.iter().map(|(_, json)| json.as_str().len()).sum()
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::SystemTime};

    use super::*;
    use crate::{
        RunRef,
        model::{
            Address, DecisionId, Ended, Event, EventKind, Handler, HandlerKind, HookName, HookReport,
            HttpHandler, HttpMethod, Outcome, Redactor, RunId, Secret, SecretText, SessionId,
        },
    };

    fn finished(number: u64, run: &str, verdict: Verdict, ended: Ended) -> FinishedEvent {
        let ids = (SessionId::new("s").unwrap(), RunId::new(run).unwrap());
        let event = Event::new(EventKind::BeforeToolDispatch, ids.0.clone(), ids.1.clone());
        let hook = HookName::new("guard").unwrap();
        let mut outcome = Outcome::proceed(DecisionId::new(1, number), EventKind::BeforeToolDispatch, 1);
        outcome.verdict = verdict;
        outcome.hooks = vec![HookReport::new(hook, HandlerKind::Command, ended)];
        let workspace_id = WorkspaceId::new("shop").unwrap();
        FinishedEvent {
            run: Arc::new(RunRef { workspace_id, session_id: ids.0, run_id: ids.1 }),
            event: Arc::new(event),
            outcome: Arc::new(outcome),
            at: SystemTime::now(),
            redactor: Redactor::default(),
            former_changes: None,
        }
    }

    #[test]
    fn what_went_well_pushes_out_nothing_that_did_not() {
        let history = DecisionHistory::new(HistoryScope::All);
        history.event_finished(finished(1, "blocked", Verdict::Block, Ended::Completed));
        history.event_finished(finished(2, "failed", Verdict::Proceed, Ended::TimedOut));
        for number in 0..=MOST_DECISIONS as u64 {
            history.event_finished(finished(3 + number, "well", Verdict::Proceed, Ended::Completed));
        }
        let all = |filter: &DecisionFilter| {
            let found = history.list(filter, 10_000);
            assert_eq!(found.left_out, 0);
            found.decisions.len()
        };
        assert_eq!(all(&DecisionFilter::default()), MOST_DECISIONS + 2);
        assert_eq!(all(&DecisionFilter { verdict: Some(Verdict::Block), ..DecisionFilter::default() }), 1);
        assert_eq!(all(&DecisionFilter { failed: true, ..DecisionFilter::default() }), 1);
        assert_eq!(all(&DecisionFilter { run: Some("blocked".into()), ..DecisionFilter::default() }), 1);
        assert_eq!(
            all(&DecisionFilter { run: Some("s".into()), ..DecisionFilter::default() }),
            MOST_DECISIONS + 2
        );
        assert_eq!(all(&DecisionFilter { hook: Some("other".into()), ..DecisionFilter::default() }), 0);
        assert_eq!(all(&DecisionFilter { tool: Some("Bash".into()), ..DecisionFilter::default() }), 0);
        let found = history.list(&DecisionFilter::default(), 3);
        assert_eq!((found.decisions.len(), found.left_out), (3, MOST_DECISIONS - 1));
        let id = history.notable.lock().kept[0].0.outcome.decision_id.to_string();
        assert!(history.details(&id).is_some() && history.payload("unknown").is_none());
    }

    #[test]
    fn a_large_decision_is_kept_without_its_payload_and_shows_no_half_of_a_secret() {
        let history = DecisionHistory::new(HistoryScope::All);
        let secret = "a-secret-of-a-hook-that-is-long";
        let mut large = finished(1, "large", Verdict::Block, Ended::Completed);
        let headers =
            vec![("X-Key".to_owned(), SecretText::secret(Secret::new(secret)))].into_iter().collect();
        let address = Address::parse("http://127.0.0.1/").unwrap();
        let hook = HttpHandler { address, method: HttpMethod::Post, headers };
        large.redactor = Redactor::of(&Handler::Http(hook));
        // The secret lies where the text is cut.
        let reason = format!("{}{secret}{}", "x".repeat(1990), "y".repeat(LARGEST));
        Arc::make_mut(&mut large.outcome).reason = Some(reason.into());
        history.event_finished(large);
        let found = history.list(&DecisionFilter::default(), 9).decisions;
        let shown = serde_json::to_string(&found).unwrap();
        assert!(found.len() == 1 && shown.contains("xxx") && !shown.contains("a-secret"), "{shown}");
        let kept = history.notable.lock().bytes;
        assert!(kept < LARGEST, "{kept} bytes");
    }
}
