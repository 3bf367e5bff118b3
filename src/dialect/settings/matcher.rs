//! Matchers as settings files write them. Refuses to compile any itself.

use super::{
    super::{document::Value, row::Row},
    facts::Wanted,
};
use crate::model::{Matcher, MatcherError};

/// A matcher that is a name, a list of names, or else a pattern that may stand anywhere.
pub(in crate::dialect) fn exact_list_or_regex(value: &Value<'_>, _: &Row) -> Option<Wanted> {
    let text = value.text()?;
    if matches!(text, "" | "*") {
        return Some(Wanted::default());
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-,| ".contains(c);
    let matcher = if text.chars().all(is_plain) {
        let names: Vec<&str> =
            text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            let message = "`matcher` names nothing, so its hooks would never run";
            value.error("matcher", message, "leave `matcher` out to match everything");
            return None;
        }
        Matcher::any_of(&names, text)
    } else {
        Matcher::search(text)
    };
    match matcher {
        Ok(matcher) => Some(Wanted { matcher: Some(matcher), condition: None }),
        Err(error) => {
            refuse(value, &error);
            None
        }
    }
}

pub(in crate::dialect) fn refuse(value: &Value<'_>, error: &MatcherError) {
    let spot = match error {
        MatcherError::Syntax { column, .. } => value.spot().character(*column),
        MatcherError::TooLong(_) | MatcherError::TooLarge | MatcherError::Glob(_) => value.spot(),
    };
    let message = format!("`{}`: {error}", value.name());
    value.error_at(spot, "matcher", message, "its hooks are left out; match more, and let them decide");
}
