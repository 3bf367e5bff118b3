//! Variables in texts of settings files: `$NAME` and `${NAME}`.

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::dialect) enum TextPart<'t> {
    /// Literal text.
    Text(&'t str),
    /// The name of a variable.
    Variable(&'t str),
}

/// The parts of a text, in order.
pub(in crate::dialect) fn text_parts(text: &str) -> Vec<TextPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        parts.push(TextPart::Text(&rest[..start]));
        let after = &rest[start + 1..];
        let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let plain = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len());
        let (name, next) = braced.unwrap_or_else(|| after.split_at(plain));
        parts.push(if name.is_empty() { TextPart::Text("$") } else { TextPart::Variable(name) });
        rest = next;
    }
    parts.push(TextPart::Text(rest));
    parts.retain(|part| *part != TextPart::Text(""));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_told_from_text() {
        use TextPart::{Text, Variable};
        assert_eq!(
            text_parts("a $B-${C}d"),
            [Text("a "), Variable("B"), Text("-"), Variable("C"), Text("d")]
        );
        assert_eq!(text_parts("$"), [Text("$")]);
        assert_eq!(
            text_parts("5 $ ${} ${x"),
            [Text("5 "), Text("$"), Text(" "), Text("$"), Text(" "), Text("$"), Text("{x")]
        );
        assert_eq!(text_parts(""), []);
    }
}
