//! What a way through a script answers, as the dialect of its hook reads it.

use bytes::Bytes;

use super::{
    paths::{PathEnd, ScriptPath},
    text::{GuardField, GuardText, TextPiece, Unclear},
};
use crate::model::{EventKind, FailurePolicy, Hook, HookDecision, NoteKind, RawReply, Reply};

/// Stands before and after the number of a field in a text that a dialect reads.
const MARK: char = '\u{F8F0}';

/// What a script answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GuardAnswer {
    /// The event goes on.
    Nothing,
    Decision(GuardDecision),
}

/// A decision, with its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GuardDecision {
    /// The key of a rule: `deny`, `ask`, `halt` or `allow`.
    pub(super) key: &'static str,
    pub(super) reason: Option<AnswerText>,
    pub(super) context: Option<AnswerText>,
    pub(super) message: Option<AnswerText>,
}

/// A text of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AnswerText {
    pub(super) text: GuardText,
    /// Whether blanks at its ends are cut off.
    pub(super) is_trimmed: bool,
}

/// What a way through a script answers for events of a kind.
pub(super) fn answer(path: &ScriptPath, hook: &Hook, kind: EventKind) -> Result<GuardAnswer, Unclear> {
    if path.out.0.iter().any(|piece| matches!(piece, TextPiece::Field(_))) {
        return Unclear::new("it prints a field where JSON would need quotes");
    }
    let exit_code = match path.end {
        Some(PathEnd::Exit(code)) => code,
        // What it has printed before does not count.
        Some(PathEnd::Error) | None => return on_failure(hook),
    };
    let fields = fields_of(path);
    let marked = |spaces: &str| {
        let raw = RawReply::Command {
            exit_code,
            stdout: with_marks(&path.out, &fields, spaces),
            stderr: with_marks(&path.err, &fields, spaces),
            truncated: false,
        };
        hook.read_reply(kind, raw)
    };
    let (Ok(plain), Ok(spaced)) = (marked(""), marked(" ")) else { return on_failure(hook) };
    if plain.failure.is_some() {
        return on_failure(hook);
    }
    let odd = !plain.patches.is_empty()
        || plain.suppress_output
        || !plain.native.is_empty()
        || !plain.warnings.is_empty();
    if odd {
        return Unclear::new("its answer says more than a decision");
    }
    decision(plain, spaced, &fields)
}

fn on_failure(hook: &Hook) -> Result<GuardAnswer, Unclear> {
    if hook.on_error == FailurePolicy::Ignore {
        Ok(GuardAnswer::Nothing)
    } else {
        Unclear::new("it can fail, which its `on_error` makes a verdict")
    }
}

fn decision(plain: Reply, spaced: Reply, fields: &[GuardField]) -> Result<GuardAnswer, Unclear> {
    let mut other = spaced.notes.into_iter().map(|(_, text)| text);
    let (mut context, mut message) = (None, None);
    for (kind, text) in plain.notes {
        let text = read_marks(&text, other.next().as_deref(), fields)?;
        match kind {
            NoteKind::AdditionalContext if context.is_none() => context = Some(text),
            NoteKind::SystemMessage if message.is_none() => message = Some(text),
            _ => return Unclear::new("its answer says more than a decision"),
        }
    }
    let key = match &plain.decision {
        HookDecision::None if context.is_none() && message.is_none() => return Ok(GuardAnswer::Nothing),
        HookDecision::None => return Unclear::new("it notes something, and decides nothing"),
        HookDecision::Allow(_) => "allow",
        HookDecision::Ask(_) => "ask",
        HookDecision::Block(_) => "deny",
        HookDecision::Halt(_) => "halt",
    };
    let reason = plain.decision.into_parts().1;
    let spaced = spaced.decision.into_parts().1;
    let reason = reason.map(|reason| read_marks(&reason, spaced.as_deref(), fields)).transpose()?;
    Ok(GuardAnswer::Decision(GuardDecision { key, reason, context, message }))
}

fn fields_of(path: &ScriptPath) -> Vec<GuardField> {
    let pieces = path.out.0.iter().chain(&path.err.0);
    let fields = pieces.filter_map(|piece| match piece {
        TextPiece::Field(field) | TextPiece::Quoted(field) => Some(field.clone()),
        TextPiece::Literal(_) => None,
    });
    fields.collect()
}

/// A text with a mark for each field, with spaces around its number.
fn with_marks(text: &GuardText, fields: &[GuardField], spaces: &str) -> Bytes {
    let mut marked = String::new();
    for piece in &text.0 {
        match piece {
            TextPiece::Literal(text) => marked.push_str(text),
            TextPiece::Field(field) | TextPiece::Quoted(field) => {
                let number = fields.iter().position(|known| known == field).unwrap_or_default();
                marked.extend([spaces, &format!("{MARK}{number}{MARK}"), spaces]);
            }
        }
    }
    marked.into()
}

/// A text with the fields for the marks. `spaced` is the same text, with a space around each mark.
fn read_marks(text: &str, spaced: Option<&str>, fields: &[GuardField]) -> Result<AnswerText, Unclear> {
    let mut read = GuardText::default();
    for (at, part) in text.split(MARK).enumerate() {
        if at % 2 == 0 {
            read.add(GuardText::literal(part));
            continue;
        }
        match part.parse::<usize>().ok().and_then(|number| fields.get(number)) {
            Some(field) => read.add(GuardText::field(field.clone())),
            None => return Unclear::new("a sentence that is not understood"),
        }
    }
    let ends = |text: &str| (text.starts_with(' '), text.ends_with(' '));
    let has_field_at_end = text.starts_with(MARK) || text.ends_with(MARK);
    let is_kept = spaced.is_none_or(|spaced| ends(spaced) == (text.starts_with(MARK), text.ends_with(MARK)));
    Ok(AnswerText { text: read, is_trimmed: has_field_at_end && !is_kept })
}
