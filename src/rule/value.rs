//! The values of expressions. Those of the event are borrowed from it.

use std::{cmp::Ordering, fmt::Write as _, ops::Deref, sync::Arc};

use super::{
    budget::Budget,
    json_tree::{JsonLevel, JsonRef},
    secrets::FoundSecret,
    shell::ShellCommand,
};

/// A text: of the event or of the rule, or one that was made.
#[derive(Debug, Clone)]
pub(super) enum RuleString<'a> {
    Borrowed(&'a str),
    Made(Arc<str>),
}

impl Deref for RuleString<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl<'a> From<&'a str> for RuleString<'a> {
    fn from(text: &'a str) -> Self {
        Self::Borrowed(text)
    }
}

impl From<String> for RuleString<'_> {
    fn from(text: String) -> Self {
        Self::Made(text.into())
    }
}

/// Whether JSON that was written is as long as it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonLength {
    Acceptable,
    TooLong,
}

/// A part of a value that is looked up.
pub(super) enum ValuePart<'a> {
    Found(RuleValue<'a>),
    Missing,
    /// The value is of a kind without such parts.
    NoSuchKind,
}

impl<'a> ValuePart<'a> {
    fn of(part: Option<RuleValue<'a>>) -> Self {
        part.map_or(Self::Missing, Self::Found)
    }

    pub(super) fn found(self) -> Option<RuleValue<'a>> {
        match self {
            Self::Found(value) => Some(value),
            Self::Missing | Self::NoSuchKind => None,
        }
    }
}

/// A value of an expression.
#[derive(Clone)]
pub(super) enum RuleValue<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(RuleString<'a>),
    /// A list or an object of the event.
    Json(JsonRef<'a>),
    List(Arc<[RuleValue<'a>]>),
    Map(Arc<[(RuleString<'a>, RuleValue<'a>)]>),
    Command(Arc<ShellCommand>),
    Secret(Arc<FoundSecret>),
}

impl<'a> RuleValue<'a> {
    /// The value of JSON of the event.
    pub(super) fn of_json(json: JsonRef<'a>) -> Self {
        match json.level() {
            JsonLevel::Null => Self::Null,
            JsonLevel::Bool(value) => Self::Bool(*value),
            JsonLevel::Int(value) => Self::Int(*value),
            JsonLevel::Double(value) => Self::Double(*value),
            JsonLevel::Plain | JsonLevel::Unescaped(_) => {
                Self::Text(json.string().unwrap_or_default().into())
            }
            JsonLevel::List(_) | JsonLevel::Object(_) | JsonLevel::TooLong => Self::Json(json),
        }
    }

    pub(super) fn texts<I: IntoIterator<Item = String>>(texts: I) -> Self {
        Self::List(texts.into_iter().map(|text| Self::Text(text.into())).collect())
    }

    /// What kind of value it is, as a message names it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Double(_) => "a double",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Command(_) => "a command",
            Self::Secret(_) => "a secret",
            Self::Json(json) => match json.level() {
                JsonLevel::Object(_) => "a map",
                JsonLevel::TooLong => "a list or map with too many elements",
                _ => "a list",
            },
        }
    }

    /// Whether it is a list or an object with more elements than a rule can look at.
    pub(super) fn is_too_long(&self) -> bool {
        matches!(self, Self::Json(json) if matches!(json.level(), JsonLevel::TooLong))
    }

    /// The field of an object.
    pub(super) fn field(&self, name: &str) -> ValuePart<'a> {
        ValuePart::of(match self {
            Self::Map(fields) => {
                fields.iter().find(|(key, _)| **key == *name).map(|(_, value)| value.clone())
            }
            Self::Json(json) => match json.level() {
                JsonLevel::Object(fields) => {
                    json.budget().spend_on_elements(fields.len());
                    let found = fields.iter().find(|(key, _)| &**key == name);
                    found.map(|(_, node)| Self::of_json(json.with(node)))
                }
                _ => return ValuePart::NoSuchKind,
            },
            Self::Command(command) => command_field(command, name),
            Self::Secret(secret) => match name {
                "kind" => Some(Self::Text(secret.kind.into())),
                "shown" => Some(Self::Text(secret.shown.clone().into())),
                _ => None,
            },
            _ => return ValuePart::NoSuchKind,
        })
    }

    /// The element of a list.
    pub(super) fn element(&self, at: usize) -> ValuePart<'a> {
        ValuePart::of(match self {
            Self::List(items) => items.get(at).cloned(),
            Self::Json(json) => match json.level() {
                JsonLevel::List(nodes) => nodes.get(at).map(|node| Self::of_json(json.with(node))),
                _ => return ValuePart::NoSuchKind,
            },
            _ => return ValuePart::NoSuchKind,
        })
    }

    pub(super) fn is_list(&self) -> bool {
        match self {
            Self::List(_) => true,
            Self::Json(json) => matches!(json.level(), JsonLevel::List(_)),
            _ => false,
        }
    }

    /// How many elements a list or a map has, or characters a text.
    pub(super) fn size(&self) -> Option<usize> {
        match self {
            Self::Text(text) => Some(text.chars().count()),
            Self::List(items) => Some(items.len()),
            Self::Map(fields) => Some(fields.len()),
            Self::Json(json) => match json.level() {
                JsonLevel::List(items) => Some(items.len()),
                JsonLevel::Object(fields) => Some(fields.len()),
                _ => None,
            },
            _ => None,
        }
    }

    /// What a macro such as `exists` goes through: the elements of a list, or the keys of a map.
    pub(super) fn item(&self, at: usize) -> Option<Self> {
        match self {
            Self::Map(fields) => fields.get(at).map(|(key, _)| Self::Text(key.clone())),
            Self::Json(json) => match json.level() {
                JsonLevel::Object(fields) => fields.get(at).map(|(key, _)| Self::Text((&**key).into())),
                _ => self.element(at).found(),
            },
            _ => self.element(at).found(),
        }
    }

    /// Whether two values are equal, as CEL has it: numbers by their value, and values of different kinds never. Without
    /// steps nothing is equal, which the budget says.
    pub(super) fn equals(&self, other: &Self, budget: &Budget) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::Text(one), Self::Text(other)) => {
                one.len() == other.len() && budget.spend_on_comparison(one.len()) && **one == **other
            }
            (Self::Int(_) | Self::Double(_), Self::Int(_) | Self::Double(_)) => {
                self.compare(other) == Some(Ordering::Equal)
            }
            (Self::Command(one), Self::Command(other)) => one == other,
            (Self::Secret(one), Self::Secret(other)) => one == other,
            (Self::Map(_) | Self::Json(_), Self::Map(_) | Self::Json(_))
            | (Self::List(_), Self::List(_) | Self::Json(_))
            | (Self::Json(_), Self::List(_)) => self.equals_deeply(other, budget),
            _ => false,
        }
    }

    fn equals_deeply(&self, other: &Self, budget: &Budget) -> bool {
        // Before it is looked into: a large value takes long to compare, and where it differs at once as well.
        let is_paid = budget.spend_on_comparison(self.json_length() + other.json_length());
        if !is_paid || self.is_too_long() || other.is_too_long() {
            budget.exhaust();
            return false;
        }
        let (Some(size), Some(others)) = (self.size(), other.size()) else { return false };
        let is_list = self.is_list();
        if size != others || is_list != other.is_list() {
            return false;
        }
        (0..size).all(|at| match (self.item(at), other.item(at)) {
            _ if !budget.spend_on_comparison(0) => false,
            (Some(one), Some(other)) if is_list => one.equals(&other, budget),
            (Some(Self::Text(key)), _) => match (self.field(&key), other.field(&key)) {
                (ValuePart::Found(one), ValuePart::Found(other)) => one.equals(&other, budget),
                _ => false,
            },
            _ => false,
        })
    }

    /// The bytes of its JSON in the event; 0 if it is not of the event.
    fn json_length(&self) -> usize {
        if let Self::Json(json) = self { json.as_str().len() } else { 0 }
    }

    /// The order of two values that have one.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(one), Self::Int(other)) => Some(one.cmp(other)),
            (Self::Double(one), Self::Double(other)) => one.partial_cmp(other),
            (Self::Int(one), Self::Double(other)) => compare_mixed(*one, *other),
            (Self::Double(one), Self::Int(other)) => compare_mixed(*other, *one).map(Ordering::reverse),
            (Self::Text(one), Self::Text(other)) => Some((**one).cmp(other)),
            (Self::Bool(one), Self::Bool(other)) => Some(one.cmp(other)),
            _ => None,
        }
    }

    /// Writes the value as JSON, up to about a number of bytes.
    pub(super) fn write_json(&self, out: &mut String, most: usize) -> JsonLength {
        if out.len() > most {
            return JsonLength::TooLong;
        }
        match self {
            Self::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Self::Int(value) => write_number(out, value),
            Self::Double(value) if value.is_finite() => write_number(out, value),
            Self::Null | Self::Double(_) => out.push_str("null"),
            Self::Text(text) => write_text(out, text),
            Self::Json(json) => out.push_str(json.as_str()),
            Self::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    if item.write_json(out, most) == JsonLength::TooLong {
                        return JsonLength::TooLong;
                    }
                }
                out.push(']');
            }
            Self::Map(fields) => {
                out.push('{');
                for (at, (key, value)) in fields.iter().enumerate() {
                    out.push_str(if at == 0 { "" } else { "," });
                    write_text(out, key);
                    out.push(':');
                    if value.write_json(out, most) == JsonLength::TooLong {
                        return JsonLength::TooLong;
                    }
                }
                out.push('}');
            }
            Self::Command(command) => write_text(out, &command.text()),
            Self::Secret(secret) => write_text(out, &secret.shown),
        }
        JsonLength::Acceptable
    }
}

fn command_field<'a>(command: &ShellCommand, name: &str) -> Option<RuleValue<'a>> {
    let texts = |texts: &[String]| RuleValue::texts(texts.iter().cloned());
    Some(match name {
        "name" => RuleValue::Text(command.name.clone().into()),
        "path" => RuleValue::Text(command.path.clone().into()),
        "args" => texts(&command.args),
        "operands" => RuleValue::texts(command.operands().into_iter().map(str::to_owned)),
        "text" => RuleValue::Text(command.text().into()),
        "via" => texts(&command.via),
        "input_from" => RuleValue::Text(command.piped_from.clone().unwrap_or_default().into()),
        "writes" => {
            let written = command.redirects.iter().filter(|(operator, _)| operator.contains('>'));
            RuleValue::texts(written.map(|(_, file)| file.clone()))
        }
        "understood" => RuleValue::Bool(command.understood),
        _ => return None,
    })
}

fn write_number(out: &mut String, number: impl std::fmt::Display) {
    // Writing to memory cannot fail.
    let _infallible = write!(out, "{number}");
}

fn write_text(out: &mut String, text: &str) {
    // A text always has a JSON form.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// The order of an integer and a double, without the rounding that a conversion of the integer would bring.
#[expect(clippy::cast_possible_truncation, reason = "it is in the range of integers")]
fn compare_mixed(int: i64, double: f64) -> Option<Ordering> {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if double.is_nan() {
        return None;
    }
    if double >= BEYOND {
        return Some(Ordering::Less);
    }
    if double < -BEYOND {
        return Some(Ordering::Greater);
    }
    let whole = double.trunc() as i64;
    Some(int.cmp(&whole).then_with(|| 0.0_f64.partial_cmp(&double.fract()).unwrap_or(Ordering::Equal)))
}
