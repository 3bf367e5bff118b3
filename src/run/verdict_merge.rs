//! What the hooks of one event have said so far, and what it comes to. Owns which verdict decides and which words
//! take the place of others; refuses to judge a reply: that is its dialect's part.

use std::sync::Arc;

use crate::model::{
    DialectName, Draft, EventKind, Hook, HookName, Json, MergeRule, Note, NoteKind, Reply, Verdict,
};

/// What the hooks of one event have said so far.
#[derive(Debug, Default)]
pub(super) struct VerdictMerger {
    /// The strictest verdict of the hooks whose verdicts count as they are, and one for each dialect that joins
    /// its replies.
    decisions: Vec<(Option<DialectName>, AttributedVerdict)>,
    notes: Vec<(DialectName, Note)>,
    native: Vec<(Box<str>, Json)>,
    /// The replies of dialects that join them, in the order in which they were settled.
    joined: Vec<(DialectName, Reply)>,
}

/// A verdict, and whose it is.
#[derive(Debug, Default)]
pub(super) struct AttributedVerdict {
    pub(super) verdict: Verdict,
    pub(super) reason: Option<Arc<str>>,
    pub(super) by: Option<HookName>,
}

/// What all of it comes to.
#[derive(Debug)]
pub(super) struct MergedVerdict {
    pub(super) decision: AttributedVerdict,
    pub(super) notes: Vec<Note>,
    pub(super) native: Vec<(Box<str>, Json)>,
}

impl VerdictMerger {
    /// What a reply counts for after the earlier ones of its dialect.
    pub(super) fn join(&mut self, hook: &Hook, kind: EventKind, told: &Draft, reply: Reply) -> Reply {
        let name = hook.dialect.name();
        if hook.dialect.merge_rule(kind) == MergeRule::Strictest {
            return reply;
        }
        let own = |(known, reply): &(DialectName, Reply)| (*known == name).then(|| reply.clone());
        let earlier: Vec<Reply> = self.joined.iter().filter_map(own).collect();
        self.joined.push((name, reply.clone()));
        hook.dialect.combine(told, &earlier, reply)
    }

    /// A verdict that counts as it is; of equally strict ones, the first decides.
    pub(super) fn decide(&mut self, by: &HookName, verdict: Verdict, reason: Option<Arc<str>>) {
        let decision = self.decision_of(None);
        if verdict > decision.verdict {
            *decision = AttributedVerdict { verdict, reason, by: Some(by.clone()) };
        }
    }

    /// What the replies of a dialect come to after one more, whose own verdict was `own`.
    pub(super) fn decide_together(
        &mut self,
        hook: &Hook,
        own: Verdict,
        verdict: Verdict,
        reason: Option<Arc<str>>,
    ) {
        let decision = self.decision_of(Some(hook.dialect.name()));
        if own == verdict || decision.verdict != verdict {
            decision.by = (verdict != Verdict::Proceed).then(|| hook.name.clone());
        }
        (decision.verdict, decision.reason) = (verdict, reason);
    }

    fn decision_of(&mut self, dialect: Option<DialectName>) -> &mut AttributedVerdict {
        let known = self.decisions.iter().position(|(name, _)| *name == dialect);
        let place = known.unwrap_or_else(|| {
            self.decisions.push((dialect, AttributedVerdict::default()));
            self.decisions.len() - 1
        });
        &mut self.decisions[place].1
    }

    /// Keeps what a hook has to say.
    pub(super) fn note(&mut self, hook: &Hook, kind: EventKind, notes: Vec<(NoteKind, String)>) {
        let dialect = hook.dialect.name();
        if hook.dialect.merge_rule(kind) == MergeRule::CombinedLatestNotes {
            let is_said = |kind: NoteKind| notes.iter().any(|(said, _)| *said == kind);
            self.notes.retain(|(known, note)| *known != dialect || !is_said(note.kind));
        }
        let note =
            |(kind, text): (NoteKind, String)| Note { hook: hook.name.clone(), kind, text: text.into() };
        self.notes.extend(notes.into_iter().map(|said| (dialect, note(said))));
    }

    /// Keeps what only a host of the hook's own dialect understands. The last word counts; words that were joined
    /// are all there are.
    pub(super) fn keep_words(&mut self, hook: &Hook, kind: EventKind, words: Vec<(Box<str>, Json)>) {
        if hook.dialect.merge_rule(kind) != MergeRule::Strictest {
            self.native = words;
            return;
        }
        for (name, value) in words {
            self.native.retain(|(known, _)| *known != name);
            self.native.push((name, value));
        }
    }

    /// The strictest verdict, the first of its strictness; the notes; the native words.
    pub(super) fn into_verdict(self) -> MergedVerdict {
        let first_strictest = |strictest: AttributedVerdict, (_, next): (_, AttributedVerdict)| {
            if next.verdict > strictest.verdict { next } else { strictest }
        };
        let decision = self.decisions.into_iter().fold(AttributedVerdict::default(), first_strictest);
        let notes = self.notes.into_iter().map(|(_, note)| note).collect();
        MergedVerdict { decision, notes, native: self.native }
    }
}
