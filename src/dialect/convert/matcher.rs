//! Matchers between dialects. A matcher is never widened or narrowed without a remark.

use regex_syntax::escape;

use crate::model::Matcher;

/// The values of an event that a hook selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PortableMatcher {
    /// All.
    Everything,
    /// These and no others.
    Names(Vec<String>),
    /// Those in which the pattern is found.
    Search(String),
}

impl PortableMatcher {
    /// The meaning of a pattern that may match anywhere.
    pub(super) fn of_pattern(pattern: &str) -> Self {
        match names_in(pattern) {
            Some(names) => Self::Names(names),
            None => Self::Search(pattern.to_owned()),
        }
    }

    /// The meaning of a name, a list of names, or else a pattern that may match anywhere.
    pub(super) fn of_list_or_pattern(text: &str) -> Self {
        match text {
            "" | "*" => Self::Everything,
            _ if is_list(text) => Self::Names(listed(text)),
            _ => Self::of_pattern(text),
        }
    }

    /// The meaning of a text that may be a pattern.
    pub(super) fn of_pattern_or_text(text: &str) -> Self {
        match text.trim() {
            "" | "*" => Self::Everything,
            text if Matcher::search(text).is_ok() => Self::of_pattern(text),
            text => Self::Names(vec![text.to_owned()]),
        }
    }

    /// The meaning of a list of names, or else a pattern for the whole value.
    pub(super) fn of_list_or_whole(text: &str) -> Self {
        match text {
            "" | "*" => Self::Everything,
            _ if is_list(text) => Self::Names(listed(text)),
            _ => Self::of_pattern(&format!("^(?:{text})$")),
        }
    }

    /// The meaning of a pattern for the whole value.
    pub(super) fn of_whole(text: &str) -> Self {
        match text {
            "" | "*" => Self::Everything,
            _ => Self::of_pattern(&format!("^(?:{text})$")),
        }
    }

    /// As a pattern for the whole value.
    pub(super) fn whole(&self) -> Option<String> {
        match self {
            Self::Everything => None,
            Self::Names(names) => Some(names.iter().map(|name| escape(name)).collect::<Vec<_>>().join("|")),
            Self::Search(pattern) => Some(format!("(?:.|\\n)*(?:{pattern})(?:.|\\n)*")),
        }
    }

    /// As a list of names, or else a pattern for the whole value.
    pub(super) fn list_or_whole(&self) -> Option<String> {
        match self {
            Self::Everything => None,
            Self::Names(_) => match self.list_or_pattern() {
                Some(list) if is_list(&list) => Some(list),
                pattern => pattern,
            },
            Self::Search(pattern) => Some(format!("(?s).*(?:{pattern}).*")),
        }
    }

    /// The meaning of a text.
    pub(super) fn of_text(text: &str) -> Self {
        match text.trim() {
            "" | "*" => Self::Everything,
            text => Self::Names(vec![text.to_owned()]),
        }
    }

    /// As a text; none if it is none.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Names(names) if names.len() == 1 => names.first().cloned(),
            _ => None,
        }
    }

    /// As a pattern that may match anywhere; `None` for everything.
    pub(super) fn pattern(&self) -> Option<String> {
        match self {
            Self::Everything => None,
            Self::Names(names) => {
                let names: Vec<String> = names.iter().map(|name| escape(name)).collect();
                Some(match names.as_slice() {
                    [name] => format!("^{name}$"),
                    _ => format!("^(?:{})$", names.join("|")),
                })
            }
            Self::Search(pattern) => Some(pattern.clone()),
        }
    }

    /// As a name, a list of names, or else a pattern that may match anywhere.
    pub(super) fn list_or_pattern(&self) -> Option<String> {
        match self {
            Self::Names(names) if names.iter().all(|name| is_list(name) && !name.contains(['|', ','])) => {
                Some(names.join("|"))
            }
            // A pattern of plain letters would be taken for a name.
            Self::Search(pattern) if is_list(pattern) => Some(format!("(?:{pattern})")),
            _ => self.pattern(),
        }
    }
}

fn is_list(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-,| ".contains(c))
}

fn listed(text: &str) -> Vec<String> {
    text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The names that a pattern matches, if it is written as `^Name$` or `^(?:One|Other)$`.
fn names_in(pattern: &str) -> Option<Vec<String>> {
    let inner = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let group = inner.strip_prefix("(?:").or_else(|| inner.strip_prefix('('));
    let inner = match group {
        Some(rest) => rest.strip_suffix(')')?,
        // `^a|b$` is `^a` or `b$`, and neither is a name.
        None if inner.contains('|') => return None,
        None => inner,
    };
    let names: Vec<String> = inner.split('|').map(unescaped).collect::<Option<_>>()?;
    (!names.iter().any(String::is_empty)).then_some(names)
}

/// The text that a pattern without special characters matches.
fn unescaped(pattern: &str) -> Option<String> {
    let text = pattern.replace("\\-", "-").replace("\\.", ".");
    // A `-` outside of brackets means itself, with and without a backslash.
    let stands_for_itself = escape(&text).replace("\\-", "-") == pattern.replace("\\-", "-");
    stands_for_itself.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_patterns() {
        let names =
            |names: &[&str]| PortableMatcher::Names(names.iter().map(|name| (*name).to_owned()).collect());
        let cases = [
            ("^Bash$", names(&["Bash"])),
            ("^(?:Edit|Write)$", names(&["Edit", "Write"])),
            ("^(Edit|Write)$", names(&["Edit", "Write"])),
            ("^mcp__x\\-y$", names(&["mcp__x-y"])),
            ("Bash", PortableMatcher::Search("Bash".to_owned())),
            ("^Edit|Write$", PortableMatcher::Search("^Edit|Write$".to_owned())),
            ("^mcp__.*$", PortableMatcher::Search("^mcp__.*$".to_owned())),
            ("^a.b$", PortableMatcher::Search("^a.b$".to_owned())),
            ("^(?:a|)$", PortableMatcher::Search("^(?:a|)$".to_owned())),
        ];
        for (pattern, expected) in cases {
            assert_eq!(PortableMatcher::of_pattern(pattern), expected, "{pattern}");
        }
        assert_eq!(
            PortableMatcher::of_list_or_pattern("Edit|Write, Read"),
            names(&["Edit", "Write", "Read"])
        );
        assert_eq!(
            PortableMatcher::of_list_or_pattern("mcp__.*"),
            PortableMatcher::Search("mcp__.*".to_owned())
        );
        assert_eq!(PortableMatcher::of_list_or_pattern("*"), PortableMatcher::Everything);
    }

    #[test]
    fn every_form_means_what_the_other_meant() {
        for pattern in
            ["^Bash$", "^(?:Edit|Write)$", "Bash", "^Edit|Write$", "mcp__.*__x", "a.b", "Edit|Write"]
        {
            let matcher = PortableMatcher::of_pattern(pattern);
            assert_eq!(PortableMatcher::of_pattern(&matcher.pattern().unwrap()), matcher, "{pattern}");
            let there = matcher.list_or_pattern().unwrap();
            let regex = |text: &str| crate::model::Matcher::search(text).unwrap();
            let back = regex(&PortableMatcher::of_list_or_pattern(&there).pattern().unwrap());
            for value in ["Bash", "BashOutput", "Edit", "Write", "Editor", "mcp__a__x", "aXb", "a.b"] {
                assert_eq!(back.accepts(value), regex(pattern).accepts(value), "{pattern} {there} {value}");
            }
        }
    }
}
