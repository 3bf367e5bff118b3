//! Merges the replies of an event's hooks into one verdict, its notes and its native fields.

use std::sync::Arc;

use crate::model::{
    DialectName, Draft, EventKind, Hook, HookName, Json, MergeRule, Note, NoteKind, Reply, Verdict,
};

/// The replies of an event's hooks so far.
#[derive(Debug, Default)]
pub(super) struct VerdictMerger {
    /// The strictest verdict of the hooks whose verdicts count by themselves (under `None`), and one verdict for each
    /// dialect that combines the replies of its hooks.
    verdicts: Vec<(Option<DialectName>, AttributedVerdict)>,
    notes: Vec<(DialectName, Note)>,
    native: Vec<(Box<str>, Json)>,
    /// The replies of dialects that combine them, in plan order.
    combined: Vec<(DialectName, Reply)>,
}

/// A verdict and the hook that gave it.
#[derive(Debug, Default)]
pub(super) struct AttributedVerdict {
    pub(super) verdict: Verdict,
    pub(super) reason: Option<Arc<str>>,
    pub(super) by: Option<HookName>,
}

/// The verdict of an event, with all notes and native fields.
#[derive(Debug)]
pub(super) struct MergedVerdict {
    pub(super) verdict: AttributedVerdict,
    pub(super) notes: Vec<Note>,
    pub(super) native: Vec<(Box<str>, Json)>,
}

impl VerdictMerger {
    /// A reply as it counts after the earlier ones of its dialect. `input` is the draft that the hook was given.
    pub(super) fn combine(&mut self, hook: &Hook, kind: EventKind, input: &Draft, reply: Reply) -> Reply {
        let name = hook.dialect.name();
        if hook.dialect.merge_rule(kind) == MergeRule::Strictest {
            return reply;
        }
        let own = self.combined.iter().filter(|(known, _)| *known == name);
        let earlier: Vec<Reply> = own.map(|(_, reply)| reply.clone()).collect();
        self.combined.push((name, reply.clone()));
        hook.dialect.combine(input, &earlier, reply)
    }

    /// Adds a verdict that counts by itself. Of equally strict ones, the first decides.
    pub(super) fn decide(&mut self, by: &HookName, verdict: Verdict, reason: Option<Arc<str>>) {
        let strictest = self.verdict_of(None);
        if verdict > strictest.verdict {
            *strictest = AttributedVerdict { verdict, reason, by: Some(by.clone()) };
        }
    }

    /// Replaces the verdict of a dialect that combines replies. `own` is the verdict of the latest reply by itself:
    /// its hook is named as the cause if it caused the verdict or changed it.
    pub(super) fn decide_combined(
        &mut self,
        hook: &Hook,
        own: Verdict,
        verdict: Verdict,
        reason: Option<Arc<str>>,
    ) {
        let combined = self.verdict_of(Some(hook.dialect.name()));
        if own == verdict || combined.verdict != verdict {
            combined.by = (verdict != Verdict::Proceed).then(|| hook.name.clone());
        }
        combined.verdict = verdict;
        combined.reason = reason;
    }

    fn verdict_of(&mut self, dialect: Option<DialectName>) -> &mut AttributedVerdict {
        let known = self.verdicts.iter().position(|(name, _)| *name == dialect);
        let position = known.unwrap_or_else(|| {
            self.verdicts.push((dialect, AttributedVerdict::default()));
            self.verdicts.len() - 1
        });
        &mut self.verdicts[position].1
    }

    /// Adds the notes of a hook.
    pub(super) fn add_notes(&mut self, hook: &Hook, kind: EventKind, notes: Vec<(NoteKind, String)>) {
        let dialect = hook.dialect.name();
        if hook.dialect.merge_rule(kind) == MergeRule::CombinedLatestNotes {
            self.notes.retain(|(known, note)| {
                *known != dialect || !notes.iter().any(|(replaced, _)| *replaced == note.kind)
            });
        }
        self.notes.extend(notes.into_iter().map(|(kind, text)| {
            let note = Note { hook: hook.name.clone(), kind, text: text.into() };
            (dialect, note)
        }));
    }

    /// Keeps the fields that only a host of the hook's own dialect understands. Those of combined replies are complete
    /// and replace all earlier ones; of others, the latest value of a field counts.
    pub(super) fn keep_native(&mut self, hook: &Hook, kind: EventKind, fields: Vec<(Box<str>, Json)>) {
        if hook.dialect.merge_rule(kind) != MergeRule::Strictest {
            self.native = fields;
            return;
        }
        for (name, value) in fields {
            self.native.retain(|(known, _)| *known != name);
            self.native.push((name, value));
        }
    }

    /// The strictest verdict, the first of its strictness, with all notes and native fields.
    pub(super) fn into_verdict(self) -> MergedVerdict {
        let mut strictest = AttributedVerdict::default();
        for (_, verdict) in self.verdicts {
            if verdict.verdict > strictest.verdict {
                strictest = verdict;
            }
        }
        let notes = self.notes.into_iter().map(|(_, note)| note).collect();
        MergedVerdict { verdict: strictest, notes, native: self.native }
    }
}
