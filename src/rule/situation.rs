//! What is known of the events that a hook runs for: their kinds, and what its matcher has looked at.

use super::variables::EventText;
use crate::model::{EventKind, Literals, MatchField, Matcher};

/// The most situations of one hook. With more, the texts that its matcher accepts are not taken one by one.
const MOST_SITUATIONS: usize = 64;

/// What is known of an event of one kind.
pub(super) struct Situation {
    kind: EventKind,
    /// What the matcher has looked at, and what that is.
    matched: Option<(EventText, MatchedText)>,
}

/// A text that a matcher has accepted.
pub(super) enum MatchedText {
    Exactly(Box<str>),
    AcceptedBy(Matcher),
}

impl Situation {
    /// The text of an event, if it is known.
    pub(super) fn text(&self, text: EventText) -> Option<&str> {
        match self.matched(text) {
            Some(MatchedText::Exactly(known)) => Some(known),
            _ => (text == EventText::Kind).then(|| self.kind.as_str()),
        }
    }

    /// What is known of a text of an event by the matcher.
    pub(super) fn matched(&self, text: EventText) -> Option<&MatchedText> {
        self.matched.as_ref().filter(|(of, _)| *of == text).map(|(_, matched)| matched)
    }
}

/// The situations that a hook on these kinds runs in. Events without the text that its matcher looks at are none.
pub(super) fn situations(
    kinds: &[EventKind],
    matcher: Option<&Matcher>,
    field: impl Fn(EventKind) -> Option<MatchField>,
) -> Vec<Situation> {
    let texts = match matcher.and_then(Matcher::literals) {
        Some(Literals::Exact(texts)) if texts.len() * kinds.len() <= MOST_SITUATIONS => texts.as_slice(),
        _ => &[],
    };
    let mut situations = Vec::new();
    for &kind in kinds {
        let looked_at = field(kind).and_then(text_of);
        match (looked_at, matcher) {
            (Some(text), Some(_)) if !texts.is_empty() => {
                let exactly = |known: &String| MatchedText::Exactly(known.as_str().into());
                let each =
                    texts.iter().map(|known| Situation { kind, matched: Some((text, exactly(known))) });
                situations.extend(each);
            }
            (Some(text), Some(matcher)) => {
                let accepted = MatchedText::AcceptedBy(matcher.clone());
                situations.push(Situation { kind, matched: Some((text, accepted)) });
            }
            _ => situations.push(Situation { kind, matched: None }),
        }
    }
    situations
}

/// The text of an event that a matcher looks at.
fn text_of(field: MatchField) -> Option<EventText> {
    Some(match field {
        MatchField::Source => EventText::Source,
        MatchField::Reason => EventText::Reason,
        MatchField::Trigger => EventText::Trigger,
        MatchField::ModelRef => EventText::ModelRef,
        MatchField::ToolName => EventText::ToolName,
        MatchField::NotificationType => EventText::NotificationType,
        MatchField::AgentType => EventText::AgentType,
        MatchField::TriggerType => EventText::TriggerType,
        // Its text is what the dialect says, which no variable has.
        MatchField::HostEvent => return None,
    })
}
