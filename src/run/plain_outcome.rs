//! An outcome of which there is little to tell, in little space.

use std::{
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use super::decision_id;
use crate::model::{
    ContentHash, Ended, EventKind, FailureMode, HandlerKind, HookName, HookReport, Outcome, PatchResults,
    TrustState, Verdict,
};

/// An outcome without texts, patches and notes.
#[derive(Debug)]
pub(super) struct PlainOutcome {
    decision: u64,
    snapshot_content: Option<Arc<str>>,
    hooks: Box<[PlainReport]>,
    snapshot_version: u32,
    event: EventKind,
    verdict: Verdict,
    suppress_output: bool,
}

/// A report without texts, patches and tokens.
#[derive(Debug)]
struct PlainReport {
    hook: HookName,
    content: Option<Arc<ContentHash>>,
    started: CompactInstant,
    duration_ns: u32,
    queued_ns: u32,
    handler: HandlerKind,
    ended: Ended,
    verdict: Verdict,
    failure_mode: Option<FailureMode>,
    trust: Option<TrustState>,
}

/// One more word would cost 8 bytes for each hook that ran, and 16 where only one did.
const _: () = assert!(size_of::<PlainReport>() <= 48);

impl PlainOutcome {
    /// `None` if there is more to remember.
    pub(super) fn of(outcome: &Outcome) -> Option<Self> {
        let Outcome {
            decision_id,
            event,
            verdict,
            reason: None,
            by: None,
            patched,
            notes,
            suppress_output,
            native,
            hooks,
            snapshot_version,
            snapshot_content,
        } = outcome
        else {
            return None;
        };
        if !(patched.is_empty() && notes.is_empty() && native.is_empty()) {
            return None;
        }
        Some(Self {
            decision: decision_id::own_number(*decision_id)?,
            snapshot_content: snapshot_content.clone(),
            hooks: hooks.iter().map(PlainReport::of).collect::<Option<_>>()?,
            snapshot_version: u32::try_from(*snapshot_version).ok()?,
            event: *event,
            verdict: *verdict,
            suppress_output: *suppress_output,
        })
    }

    /// How many bytes it takes beyond its own.
    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.hooks)
    }

    pub(super) fn outcome(&self) -> Outcome {
        let id = decision_id::numbered(self.decision);
        Outcome {
            verdict: self.verdict,
            suppress_output: self.suppress_output,
            hooks: self.hooks.iter().map(PlainReport::report).collect(),
            snapshot_content: self.snapshot_content.clone(),
            ..Outcome::proceed(id, self.event, self.snapshot_version.into())
        }
    }
}

impl PlainReport {
    fn of(report: &HookReport) -> Option<Self> {
        let HookReport {
            hook,
            handler,
            ended,
            verdict,
            patched,
            values: None,
            duration,
            queued,
            content,
            tokens: None,
            error: None,
            failure_mode,
            trust,
            patch_results,
            started,
            warnings,
        } = report
        else {
            return None;
        };
        if !(patched.is_empty() && warnings.is_empty() && *patch_results == PatchResults::default()) {
            return None;
        }
        Some(Self {
            hook: hook.clone(),
            content: content.clone(),
            started: CompactInstant::of(*started)?,
            duration_ns: u32::try_from(duration.as_nanos()).ok()?,
            queued_ns: u32::try_from(queued.as_nanos()).ok()?,
            handler: *handler,
            ended: *ended,
            verdict: *verdict,
            failure_mode: *failure_mode,
            trust: *trust,
        })
    }

    fn report(&self) -> HookReport {
        HookReport {
            verdict: self.verdict,
            duration: Duration::from_nanos(self.duration_ns.into()),
            queued: Duration::from_nanos(self.queued_ns.into()),
            content: self.content.clone(),
            failure_mode: self.failure_mode,
            trust: self.trust,
            started: self.started.instant(),
            ..HookReport::new(self.hook.clone(), self.handler, self.ended)
        }
    }
}

/// A moment, or none, in half the space: nanoseconds since another one, earlier or later.
#[derive(Debug, Clone, Copy)]
struct CompactInstant(i64);

static EPOCH: LazyLock<Instant> = LazyLock::new(|| tokio::time::Instant::now().into_std());

impl CompactInstant {
    const NONE: i64 = i64::MIN;

    /// `None` for one that is centuries away.
    fn of(instant: Option<Instant>) -> Option<Self> {
        let Some(instant) = instant else { return Some(Self(Self::NONE)) };
        let nanoseconds = |duration: Duration| i64::try_from(duration.as_nanos()).ok();
        match instant.checked_duration_since(*EPOCH) {
            Some(later) => nanoseconds(later),
            None => nanoseconds(EPOCH.duration_since(instant)).map(|earlier| -earlier),
        }
        .map(Self)
    }

    fn instant(self) -> Option<Instant> {
        let distance = Duration::from_nanos(self.0.unsigned_abs());
        match self.0 {
            Self::NONE => None,
            0.. => EPOCH.checked_add(distance),
            _ => EPOCH.checked_sub(distance),
        }
    }
}
