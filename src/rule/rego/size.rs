//! How large values are, about, without making anything of them.

use regorus::Value;

/// The longest text that a built-in makes, in bytes: as long as the texts that expressions of rules make.
pub(super) const LONGEST_TEXT: usize = 1 << 20;

/// The longest JSON of a change, in bytes, as that of rules.
pub(super) const LONGEST_JSON: usize = 16 << 20;

/// What has too many digits is longer than anything may be: it takes longer the more there are.
const TOO_LONG: usize = LONGEST_JSON + 1;

/// What a number counts as, in bytes.
pub(super) const NUMBER: usize = 32;

/// What an element of a list takes, in bytes.
pub(super) const PART: usize = 24;

/// The most digits of a number, about. Numbers grow as they are multiplied.
pub(super) const MOST_DIGITS: usize = 4_096;

/// The most digits of an exponent.
const MOST_EXPONENT_DIGITS: usize = 3;

/// How many elements a value has.
pub(super) fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Set(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    }
}

/// The bytes of values as JSON, about. What is longer than any text may be is not looked through.
pub(super) fn given(values: &[Value]) -> usize {
    values.iter().fold(0, length)
}

/// Adds the bytes of a value. Values share their parts, so that one can be much longer than the memory it takes.
pub(super) fn length(sum: usize, value: &Value) -> usize {
    if sum > LONGEST_JSON {
        return sum;
    }
    match value {
        Value::String(text) => sum + text.len() + 2,
        Value::Array(items) => items.iter().fold(sum + 2, length),
        Value::Set(items) => items.iter().fold(sum + 2, length),
        Value::Object(fields) => {
            fields.iter().fold(sum + 2, |sum, (key, value)| length(length(sum, key) + 2, value))
        }
        Value::Number(_) => sum.saturating_add(number(digits(value))),
        Value::Null | Value::Bool(_) | Value::Undefined => sum + 4,
    }
}

/// How many digits a number has, about.
fn digits(value: &Value) -> usize {
    let Value::Number(number) = value else { return 0 };
    if number.as_i64().is_some() {
        return 2;
    }
    number.as_big().map_or(NUMBER, |big| usize::try_from(big.bits() / 3).unwrap_or(TOO_LONG))
}

/// What a number with so many digits counts as, in bytes: those of one with too many take longer the more there are.
pub(super) fn number(digits: usize) -> usize {
    if digits > MOST_DIGITS { TOO_LONG } else { digits }
}

/// The digits of all numbers of a list.
pub(super) fn digits_of_all(value: &Value) -> usize {
    sum_of(value, digits)
}

/// Adds up something of the elements of a list.
fn sum_of(value: &Value, of: fn(&Value) -> usize) -> usize {
    match value {
        Value::Array(items) => items.iter().map(of).fold(0, usize::saturating_add),
        Value::Set(items) => items.iter().map(of).fold(0, usize::saturating_add),
        _ => 0,
    }
}

/// What a number that a text stands for counts as: with a large exponent it has too many digits.
pub(super) fn with_exponent(text: &Value) -> usize {
    let Value::String(text) = text else { return 0 };
    let exponent = text.split(['e', 'E']).nth(1).unwrap_or_default();
    let exponent = exponent.trim_start_matches(['+', '-']);
    // The interpreter leaves such lines out.
    let digits = exponent.bytes().filter(|byte| *byte != b'_').take_while(u8::is_ascii_digit).count();
    if digits > MOST_EXPONENT_DIGITS { TOO_LONG } else { number(text.len()) }
}

/// How many values there are in one.
pub(super) fn count_all(value: &Value) -> usize {
    fn add(sum: usize, value: &Value) -> usize {
        match value {
            _ if sum > LONGEST_TEXT => sum,
            Value::Array(items) => items.iter().fold(sum + 1, add),
            Value::Set(items) => items.iter().fold(sum + 1, add),
            Value::Object(fields) => fields.iter().fold(sum + 1, |sum, (_, value)| add(sum, value)),
            _ => sum + 1,
        }
    }
    add(0, value)
}

/// How many elements the parts of a value have together.
pub(super) fn count_parts(value: &Value) -> usize {
    sum_of(value, count)
}

/// How many values the paths to all parts of a value have together.
pub(super) fn walked(value: &Value) -> usize {
    fn add(sum: usize, value: &Value, depth: usize) -> usize {
        let sum = sum + 2 + depth;
        match value {
            _ if sum > LONGEST_JSON => sum,
            Value::Array(items) => items.iter().fold(sum, |sum, item| add(sum, item, depth + 1)),
            Value::Set(items) => items.iter().fold(sum, |sum, item| add(sum, item, depth + 1)),
            Value::Object(fields) => fields.iter().fold(sum, |sum, (_, item)| add(sum, item, depth + 1)),
            _ => sum,
        }
    }
    add(0, value, 0)
}

/// The bytes that a value takes without what its parts share with others, about.
pub(super) fn made(value: &Value) -> usize {
    fn texts<'v>(items: impl Iterator<Item = &'v Value>) -> usize {
        items.map(|item| if let Value::String(text) = item { PART + text.len() } else { PART }).sum()
    }
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => texts(items.iter()),
        Value::Set(items) => texts(items.iter()),
        Value::Object(fields) => texts(fields.values()).saturating_mul(2),
        _ => 0,
    }
}

/// How deep a value nests.
pub(super) fn deepest(value: &Value) -> usize {
    // A value that is looked through is no longer than a text may be.
    if given(std::slice::from_ref(value)) > LONGEST_TEXT {
        return 1;
    }
    match value {
        Value::Array(items) => 1 + items.iter().map(deepest).max().unwrap_or_default(),
        Value::Set(items) => 1 + items.iter().map(deepest).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.iter().map(|(_, value)| deepest(value)).max().unwrap_or_default(),
        _ => 1,
    }
}
