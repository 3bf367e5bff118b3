//! Conditions and texts of a guard as expressions of rules.

use super::{
    answers::AnswerText,
    paths::PathAnswer,
    pattern::NO_EDGE_HERE,
    text::{AbsentField, FieldTest, GuardField, NOTHING_WHOLE, TextPiece, Unclear},
};

/// The fields that a guard uses, by the names that its rule gives them.
#[derive(Debug, Default)]
pub(super) struct NamedFields {
    fields: Vec<(String, GuardField)>,
}

/// Words that are no names in expressions.
const RESERVED: [&str; 12] =
    ["in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"];

impl NamedFields {
    /// The names and what they stand for.
    pub(super) fn definitions(&self) -> Vec<(String, String)> {
        let define = |(name, field): &(String, GuardField)| {
            let whole = variable(&field.path)?;
            let absent = match &field.absent {
                AbsentField::Text(text) => text.as_str(),
                AbsentField::Undefined => "",
            };
            Some((name.clone(), format!("has({whole}) ? {whole} : {}", quoted(absent))))
        };
        self.fields.iter().filter_map(define).collect()
    }

    /// The expression of a field.
    fn expression(&mut self, field: &GuardField) -> Result<String, Unclear> {
        let Some(whole) = variable(&field.path) else {
            return Unclear::new(format!("the field `{}`", field.path.join(".")));
        };
        if field.path.len() == 1 {
            return Ok(whole);
        }
        let field = GuardField { is_cut: false, ..field.clone() };
        if let Some((name, _)) = self.fields.iter().find(|(_, known)| *known == field) {
            return Ok(name.clone());
        }
        if self.fields.iter().any(|(_, known)| known.path != field.path) {
            return Unclear::new("it uses a second field");
        }
        let key = field.path.last().map_or("field", String::as_str);
        let stem =
            if RESERVED.contains(&key) || ["tool", "event", "prompt"].contains(&key) { "field" } else { key };
        let name = if self.fields.is_empty() { stem.to_owned() } else { format!("{stem}_or_other") };
        if self.fields.len() > 1 {
            return Unclear::new("a field that counts as several texts where it is missing");
        }
        self.fields.push((name.clone(), field));
        Ok(name)
    }

    /// What has to hold on a way.
    pub(super) fn condition(&mut self, steps: &[PathAnswer]) -> Result<String, Unclear> {
        let mut parts = Vec::new();
        for step in steps.iter().filter(|step| !is_implied(step, steps)) {
            let part = self.step(step)?;
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        Ok(parts.join(" && "))
    }

    fn step(&mut self, step: &PathAnswer) -> Result<String, Unclear> {
        if step.test == FieldTest::IsThere {
            let Some(whole) = variable(&step.field.path) else {
                return Unclear::new("a field of another part");
            };
            return Ok(format!("{}has({whole})", if step.holds { "" } else { "!" }));
        }
        if let FieldTest::Matches(pattern) = &step.test
            && !step.holds
            && pattern.contains(NO_EDGE_HERE)
        {
            return Unclear::new("an edge of a word in a pattern that must not match");
        }
        let of = self.expression(&step.field)?;
        let not = if step.holds { "" } else { "!" };
        Ok(match &step.test {
            FieldTest::Matches(pattern) => format!("{not}{of}.matches({})", pattern_text(pattern)),
            FieldTest::Contains(text) => format!("{not}{of}.contains({})", quoted(text)),
            FieldTest::StartsWith(text) => format!("{not}{of}.startsWith({})", quoted(text)),
            FieldTest::EndsWith(text) => format!("{not}{of}.endsWith({})", quoted(text)),
            FieldTest::OneOf(texts) => match (texts.as_slice(), step.holds) {
                ([text], true) => format!("{of} == {}", quoted(text)),
                ([text], false) => format!("{of} != {}", quoted(text)),
                (texts, holds) => {
                    let list: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
                    let found = format!("{of} in [{}]", list.join(", "));
                    if holds { found } else { format!("!({found})") }
                }
            },
            FieldTest::IsThere => String::new(),
        })
    }

    /// A text, on a way.
    pub(super) fn text(&mut self, answer: &AnswerText, steps: &[PathAnswer]) -> Result<String, Unclear> {
        let last = answer.text.0.len().saturating_sub(1);
        let mut parts = Vec::new();
        for (at, piece) in answer.text.0.iter().enumerate() {
            parts.push(match piece {
                TextPiece::Literal(text) => quoted(text),
                TextPiece::Field(field) | TextPiece::Quoted(field) => {
                    // What is trimmed at the end has lost its last line's ends anyway.
                    let is_trimmed = answer.is_trimmed && at == last;
                    if field.is_cut && !field.is_always_there() && !is_trimmed {
                        return Unclear::new("a sentence with a text in its middle that the shell cuts");
                    }
                    let is_there = steps.iter().any(|step| rejects_nothing(step, field));
                    let absent =
                        if is_there { AbsentField::Text(String::new()) } else { field.absent.clone() };
                    self.expression(&GuardField { absent, ..field.clone() })?
                }
            });
        }
        let whole = if parts.is_empty() { "\"\"".to_owned() } else { parts.join(" + ") };
        Ok(match (answer.is_trimmed, parts.len()) {
            (false, _) => whole,
            (true, 1) => format!("{whole}.trim()"),
            (true, _) => format!("({whole}).trim()"),
        })
    }
}

/// Whether a step says that a field is there and not empty.
fn rejects_nothing(step: &PathAnswer, field: &GuardField) -> bool {
    let is_of_it = step.field.path == field.path;
    is_of_it
        && step.test != FieldTest::IsThere
        && step.holds != step.test.holds("")
        && step.field.absent == AbsentField::Text(String::new())
}

/// Whether another step of the same way says it too: that the field is there, or not empty.
fn is_implied(step: &PathAnswer, steps: &[PathAnswer]) -> bool {
    let asks_for_any = match &step.test {
        FieldTest::IsThere => step.holds,
        FieldTest::OneOf(texts) => !step.holds && texts == &[""],
        FieldTest::Matches(pattern) => !step.holds && pattern == NOTHING_WHOLE,
        _ => false,
    };
    asks_for_any
        && steps.iter().any(|other| {
            let is_other = other.split != step.split;
            let is_stronger = other.holds && !matches!(&other.test, FieldTest::IsThere);
            is_other && is_stronger && rejects_nothing(other, &step.field) && !other.test.holds("\n\n")
        })
}

/// The variable of a field of the input.
fn variable(path: &[String]) -> Option<String> {
    let is_name = |key: &String| {
        !RESERVED.contains(&key.as_str())
            && key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match path {
        [name] if name == "tool_name" => Some("tool.name".to_owned()),
        [name] if name == "prompt" => Some("prompt".to_owned()),
        [part, rest @ ..] if part == "tool_input" && !rest.is_empty() && rest.iter().all(is_name) => {
            Some(format!("tool.input.{}", rest.join(".")))
        }
        _ => None,
    }
}

/// A text as a string of an expression.
fn quoted(text: &str) -> String {
    let mut written = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => written.push_str("\\\""),
            '\\' => written.push_str("\\\\"),
            '\n' => written.push_str("\\n"),
            '\t' => written.push_str("\\t"),
            '\r' => written.push_str("\\r"),
            c if c.is_control() => written.extend(["\\u", &format!("{:04X}", u32::from(c))]),
            c => written.push(c),
        }
    }
    written + "\""
}

/// A pattern as a string of an expression, without more backslashes if that can be.
fn pattern_text(pattern: &str) -> String {
    let is_plain = !pattern.contains(['\n', '\r']) && !pattern.ends_with('\\') && pattern.contains('\\');
    match (is_plain, pattern.contains('"'), pattern.contains('\'')) {
        (true, false, _) => format!("r\"{pattern}\""),
        (true, true, false) => format!("r'{pattern}'"),
        _ => quoted(pattern),
    }
}
