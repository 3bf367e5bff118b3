//! Variables in texts of settings files: `$NAME` and `${NAME}`. Refuses to know their values.

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::dialect) enum Part<'t> {
    /// Something to take as it is.
    Text(&'t str),
    /// The name of a variable.
    Variable(&'t str),
}

/// The parts of a text, in order.
pub(in crate::dialect) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        parts.push(Part::Text(&rest[..start]));
        let after = &rest[start + 1..];
        let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let plain = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len());
        let (name, next) = braced.unwrap_or_else(|| after.split_at(plain));
        parts.push(if name.is_empty() { Part::Text("$") } else { Part::Variable(name) });
        rest = next;
    }
    parts.push(Part::Text(rest));
    parts.retain(|part| *part != Part::Text(""));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_told_from_text() {
        use Part::{Text, Variable};
        assert_eq!(parts("a $B-${C}d"), [Text("a "), Variable("B"), Text("-"), Variable("C"), Text("d")]);
        assert_eq!(parts("$"), [Text("$")]);
        assert_eq!(
            parts("5 $ ${} ${x"),
            [Text("5 "), Text("$"), Text(" "), Text("$"), Text(" "), Text("$"), Text("{x")]
        );
        assert_eq!(parts(""), []);
    }
}
