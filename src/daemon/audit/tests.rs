//! The audit on a disk that is full, slow, or taken for another.

use std::{
    io,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;

use super::{
    counters::{AuditCounters, AuditQueueLimits},
    line::{self, AuditEntry},
    queue::{Audit, weight},
    writer::AuditSink,
};
use crate::{
    FinishedEvent, OutcomeObserver, RunRef,
    config::{AuditPatches, AuditSettings, AuditSync},
    model::{Event, EventKind, Json, Outcome, RunId, SessionId, Target, WorkspaceId},
};

/// A disk with so much room, and what it can do about a line that does not fit.
#[derive(Debug, Clone, Default)]
struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    text: Vec<u8>,
    most: Option<usize>,
    takes_back: bool,
    syncs: usize,
    cannot_sync: bool,
    /// Each write waits for a word, while there may be one.
    gate: Option<Receiver<()>>,
}

impl Disk {
    fn with(state: State) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    fn set_most(&self, most: Option<usize>) {
        self.0.lock().most = most;
    }

    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().text.clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

impl AuditSink for Disk {
    fn remaining_capacity(&self) -> u64 {
        u64::MAX
    }

    fn reserve(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        let _ = state.gate.as_ref().map(Receiver::recv);
        let room =
            state.most.map_or(bytes.len(), |most| most.saturating_sub(state.text.len()).min(bytes.len()));
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.text.extend_from_slice(&bytes[..room]);
        Ok(room)
    }

    fn discard_tail(&mut self, bytes: usize) -> bool {
        let mut state = self.0.lock();
        let left = state.text.len() - bytes;
        if state.takes_back {
            state.text.truncate(left);
        }
        state.takes_back
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.syncs += 1;
        if state.cannot_sync { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn reopen_if_moved(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn audit(disk: &Disk, change: impl FnOnce(&mut AuditSettings)) -> Audit {
    let mut settings = AuditSettings::default();
    change(&mut settings);
    Audit::on(Box::new(disk.clone()), "disk".to_owned(), &settings, None).unwrap()
}

fn finished(run: &str, at: SystemTime) -> FinishedEvent {
    let (session, run) = (SessionId::new("s").unwrap(), RunId::new(run).unwrap());
    let event = Event::new(EventKind::BeforeToolDispatch, session.clone(), run.clone());
    let workspace_id = WorkspaceId::new("shop").unwrap();
    FinishedEvent {
        run: Arc::new(RunRef { workspace_id, session_id: session, run_id: run }),
        outcome: Arc::new(Outcome::proceed(crate::run::next_decision_id(), event.kind, 1)),
        event: Arc::new(event),
        at,
        redactor: crate::model::Redactor::default(),
        former_changes: None,
    }
}

fn put(audit: &Audit, run: &str) {
    audit.event_finished(finished(run, UNIX_EPOCH));
}

fn runs(lines: &[String]) -> Vec<String> {
    let run = |line: &String| serde_json::from_str::<serde_json::Value>(line).unwrap()["run_id"].clone();
    lines.iter().map(|line| run(line).as_str().unwrap().to_owned()).collect()
}

fn written(audit: &Audit) -> u64 {
    audit.counters().written.load(Ordering::Relaxed)
}

/// Waits until so many lines are written or lost.
fn until_done(audit: &Audit, lines: u64) {
    while written(audit) + audit.counters().dropped_write.load(Ordering::Relaxed) < lines {
        thread::yield_now();
    }
}

/// Whether the answer to an event may be given, where the audit is required.
async fn is_confirmed(audit: &Audit) -> bool {
    let finished = finished("r", UNIX_EPOCH);
    let decision = finished.outcome.decision_id;
    audit.event_finished(finished);
    audit.confirm(decision, || None).await
}

#[tokio::test(start_paused = true)]
async fn no_answer_is_given_while_the_disk_hangs_and_none_waits_for_ever() {
    let (opens, gate) = mpsc::channel();
    let disk = Disk::with(State { gate: Some(gate), ..State::default() });
    let audit = audit(&disk, |settings| settings.required = true);
    assert!(!is_confirmed(&audit).await);
    drop(opens);
    // The writer has a thread of its own, and takes its time.
    tokio::time::resume();
    until_done(&audit, 1);
    assert!(is_confirmed(&audit).await, "it works again");
}

#[tokio::test]
async fn a_line_that_may_not_be_on_the_disk_confirms_no_answer() {
    for (sync, is_enough) in [(AuditSync::Always, false), (AuditSync::Never, true)] {
        let disk = Disk::with(State { cannot_sync: true, ..State::default() });
        let audit = audit(&disk, |settings| {
            settings.required = true;
            settings.sync = sync;
        });
        assert_eq!(is_confirmed(&audit).await, is_enough, "{sync:?}");
        assert_eq!(disk.lines().len(), 1);
    }
}

#[test]
fn what_waits_is_written_at_the_end() {
    let disk = Disk::default();
    let audit = audit(&disk, |_| {});
    for number in 0..3000 {
        put(&audit, &number.to_string());
    }
    audit.close();
    let expected: Vec<String> = (0..3000).map(|number: u32| number.to_string()).collect();
    assert_eq!(runs(&disk.lines()), expected);
    assert_eq!(written(&audit), 3000);
    put(&audit, "late");
    assert_eq!(audit.counters().dropped_queue.load(Ordering::Relaxed), 1);
}

#[test]
fn what_has_no_place_is_dropped_and_counted() {
    let (open, gate) = mpsc::channel();
    let disk = Disk::with(State { gate: Some(gate), ..State::default() });
    let audit = audit(&disk, |settings| settings.queue = 10.try_into().unwrap());
    for number in 0..1000 {
        put(&audit, &number.to_string());
    }
    drop(open);
    audit.close();
    let dropped = audit.counters().dropped_queue.load(Ordering::Relaxed);
    assert_eq!(disk.lines().len() as u64 + dropped, 1000);
    assert!((11..=990).contains(&dropped) || dropped == 990, "{dropped}");
    assert_eq!(audit.counters().waiting.load(Ordering::Relaxed), 0);
    assert_eq!(audit.counters().weight.load(Ordering::Relaxed), 0);
}

#[test]
fn large_lines_have_fewer_places() {
    let (counters, limits) = (AuditCounters::default(), AuditQueueLimits { lines: 10, bytes: 100 });
    assert!(counters.try_reserve(500, limits), "the first has a place whatever it weighs");
    assert!(!counters.try_reserve(1, limits));
    counters.release(500);
    assert!(
        counters.try_reserve(60, limits)
            && counters.try_reserve(40, limits)
            && !counters.try_reserve(1, limits)
    );
    let mut large = finished("run", UNIX_EPOCH);
    let mut event = Event::clone(&large.event);
    event.targets.set(Target::ToolInput, Json::of(&"x".repeat(5000)).unwrap());
    large.event = Arc::new(event);
    assert!(weight(&AuditEntry::of(large.clone(), AuditPatches::Paths)) < 5000, "nothing of it is told");
    let mut outcome = Outcome::clone(&large.outcome);
    outcome.patched.set(Target::ToolInput, Json::parse("1").unwrap());
    large.outcome = Arc::new(outcome);
    assert!(weight(&AuditEntry::of(large, AuditPatches::Paths)) > 5500);
}

#[test]
fn a_full_disk_costs_its_lines_and_no_others() {
    for takes_back in [true, false] {
        let disk = Disk::with(State { takes_back, ..State::default() });
        let audit = audit(&disk, |_| {});
        put(&audit, "first");
        until_done(&audit, 1);
        let size = disk.0.lock().text.len();
        disk.set_most(Some(size + 10));
        put(&audit, "lost");
        until_done(&audit, 2);
        put(&audit, "lost too");
        until_done(&audit, 3);
        disk.set_most(None);
        put(&audit, "after");
        audit.close();
        let lines = disk.lines();
        let whole: Vec<String> =
            lines.into_iter().filter(|line| line.ends_with('}') && line.starts_with('{')).collect();
        assert_eq!(runs(&whole), ["first", "after"], "takes back: {takes_back}");
        assert_eq!((written(&audit), audit.counters().dropped_write.load(Ordering::Relaxed)), (2, 2));
    }
}

#[test]
fn lines_are_synced_as_the_settings_say() {
    let syncs = |sync| {
        let disk = Disk::default();
        let audit = audit(&disk, |settings| settings.sync = sync);
        for number in 0..20 {
            put(&audit, &number.to_string());
        }
        audit.close();
        disk.0.lock().syncs
    };
    assert_eq!(syncs(AuditSync::Never), 0);
    assert_eq!(syncs(AuditSync::Always), 20);
    assert_eq!(syncs(AuditSync::Every(Duration::from_hours(1))), 1, "at the end");
}

#[test]
fn a_clock_that_jumps_changes_nothing_but_the_time() {
    let disk = Disk::default();
    let audit = audit(&disk, |settings| settings.sync = AuditSync::Every(Duration::from_hours(1)));
    let day = Duration::from_hours(24);
    for (run, at) in [("a", UNIX_EPOCH + 2 * day), ("b", UNIX_EPOCH - day), ("c", UNIX_EPOCH + day)] {
        audit.event_finished(finished(run, at));
    }
    audit.close();
    let lines = disk.lines();
    assert_eq!(runs(&lines), ["a", "b", "c"]);
    assert!(
        lines[1].starts_with(r#"{"at":"1970-01-01T00:00:00.000Z","workspace_id":"shop","session_id":"s""#)
    );
}

#[test]
fn no_line_has_a_line_break_within() {
    let mut changed = finished("run", UNIX_EPOCH);
    let mut outcome = Outcome::clone(&changed.outcome);
    outcome.patched.set(Target::ToolInput, Json::parse("{\"a\":\r\n1.50}").unwrap());
    changed.outcome = Arc::new(outcome);
    let mut text = Vec::new();
    line::write(&AuditEntry::of(changed, AuditPatches::Values), AuditPatches::Values, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(r#""patched":{"tool_input":{"a":  1.50}}"#), "{text}");
    assert_eq!(text.matches('\n').count(), 1);
}
