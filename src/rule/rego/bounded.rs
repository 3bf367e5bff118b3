//! Bounds what policies make: how long the result of a built-in would be, or how much it would compare, is estimated before it is
//! called, and paid for in steps.

use regorus::{Engine, Value, unstable::BUILTINS as NATIVE};
use serde::de::IgnoredAny;

use super::{
    budget,
    builtins::{BUILTINS, RANGES, range},
    document,
    native::{Refusal, called, pay_for_places},
    size::{
        LONGEST_JSON, LONGEST_TEXT, NUMBER, count, count_all, count_parts, deepest, digits_of_all, given,
        made, number, walked, with_exponent,
    },
};

/// What an element of a list counts as, in bytes, so that lists have at most 65,536.
const ELEMENT: usize = 16;

/// The farthest that a number is shifted.
const FARTHEST_SHIFT: u64 = 4_096;

/// How long the result of a built-in is at most for these arguments, in bytes.
type Estimate = fn(&[Value]) -> usize;

/// The built-ins that make something longer than what they are given. What is not one of the types that they take has no length:
/// they refuse it.
static MAKING: [(&str, Estimate); 22] = [
    ("array.concat", |args| ELEMENT * (count(&args[0]) + count(&args[1]))),
    ("base64.encode", |args| given(args) / 3 * 4),
    ("base64url.encode", |args| given(args) / 3 * 4),
    ("base64url.encode_no_pad", |args| given(args) / 3 * 4),
    ("bits.lsh", |args| match args[1].as_u64() {
        Ok(by) if by > FARTHEST_SHIFT => usize::MAX,
        _ => given(&args[..1]).saturating_add(NUMBER),
    }),
    ("concat", |args| given(&args[1..]).saturating_add(given(&args[..1]).saturating_mul(count(&args[1])))),
    ("glob.quote_meta", given),
    ("format_int", given),
    ("hex.encode", |args| 2 * given(args)),
    ("json.marshal", given),
    ("json.marshal_with_options", |args| {
        // Each line of the value has the text before it, and is indented at most as deep as the value.
        let lines = count_all(&args[0]).saturating_mul(given(&args[1..]).saturating_mul(deepest(&args[0])));
        given(&args[..1]).saturating_add(lines)
    }),
    ("lower", given),
    ("product", |args| number(digits_of_all(&args[0]))),
    ("regex.replace", replaced_by_pattern),
    ("replace", |args| replaced(&args[0], &args[1], &args[2])),
    ("sprintf", |args| given(args).saturating_add(widths(&args[0]))),
    ("strings.reverse", given),
    ("units.parse", |args| with_exponent(&args[0])),
    ("units.parse_bytes", |args| with_exponent(&args[0])),
    ("upper", given),
    ("urlquery.encode", given),
    ("urlquery.encode_object", given),
];

/// The built-ins that compare each part of one argument with each of another, or copy what they have again for each part: with
/// how many values that is at most.
static COMPARING: [(&str, Estimate); 12] = [
    ("indexof", compared_texts),
    ("indexof_n", compared_texts),
    ("object.subset", |args| count_all(&args[0]).saturating_mul(count_all(&args[1]))),
    ("object.union", |args| COPIED * (count_all(&args[0]) + count_all(&args[1]))),
    ("object.union_n", |args| count(&args[0]).saturating_mul(count_parts(&args[0]))),
    ("strings.any_prefix_match", |args| count(&args[0]).saturating_mul(count(&args[1]))),
    ("strings.any_suffix_match", |args| count(&args[0]).saturating_mul(count(&args[1]))),
    ("strings.count", compared_texts),
    ("trim", compared_texts),
    ("trim_left", compared_texts),
    ("trim_right", compared_texts),
    ("union", |args| count(&args[0]).saturating_mul(count_parts(&args[0]))),
];

/// The built-ins that give a part of what they are given, or say something of it, without looking through it.
const TELLING: [&str; 12] = [
    "count",
    "is_array",
    "is_boolean",
    "is_null",
    "is_number",
    "is_object",
    "is_set",
    "is_string",
    "max",
    "min",
    "object.get",
    "type_name",
];

/// How many comparisons a copy of a value counts as.
const COPIED: usize = 8;

/// How many bytes of a text are compared in the time of a value.
const BYTES_PER_VALUE: usize = 512;

/// Reads a value from a text.
type Read = fn(&str) -> Result<Value, serde_json::Error>;

/// The built-ins that read JSON.
static READING: [(&str, Read); 3] = [
    ("json.is_valid", |text| Ok(Value::from(document::read(text).is_ok()))),
    ("json.unmarshal", document::read),
    ("to_number", |text| match document::read(text)? {
        number @ Value::Number(_) => Ok(number),
        _ => Err(serde::de::Error::custom("it is no number")),
    }),
];

/// Puts bounded forms in the place of all built-ins that policies may call.
///
/// Returns whether they are in their place.
pub(super) fn bound(engine: &mut Engine, is_strict: bool) -> bool {
    // What is printed goes nowhere.
    let names =
        BUILTINS.into_iter().filter(|name| *name != "print" && RANGES.iter().all(|(range, _)| range != name));
    let mut added = names.map(|name| {
        let Some((_, arguments)) = NATIVE.get(name) else { return false };
        let make = Make::of(name);
        let call = move |args: Vec<Value>| match make.result(name, &args, is_strict) {
            // As the interpreter has it for its own built-ins.
            Err(Refusal::Arguments(_)) if !is_strict => Ok(Value::Undefined),
            result => result.map_err(Into::into),
        };
        engine.add_extension(name.to_owned(), *arguments, Box::new(call)).is_ok()
    });
    added.all(|is_added| is_added)
        && RANGES.iter().all(|(name, arguments)| {
            engine.add_extension((*name).to_owned(), *arguments, Box::new(|args| Ok(range(&args)))).is_ok()
        })
}

/// How a result is made.
#[derive(Clone, Copy)]
enum Make {
    /// It is no longer than what is given.
    Plain,
    /// It is a part of what is given, or says something of it.
    Telling,
    Once(Estimate),
    Comparing(Estimate),
    Read(Read),
    /// One text after the other is replaced, each in the result of the one before.
    ReplaceEach,
    /// One change after the other.
    Patch,
    /// Each part of a value with its path.
    Walk,
    /// What a pattern finds.
    Find,
}

impl Make {
    fn of(name: &str) -> Self {
        fn known<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
            table.iter().find(|(known, _)| *known == name).map(|(_, found)| *found)
        }
        match name {
            "json.patch" => return Self::Patch,
            "regex.find_all_string_submatch_n" | "regex.find_n" | "regex.split" => return Self::Find,
            "strings.replace_n" => return Self::ReplaceEach,
            "walk" => return Self::Walk,
            _ if TELLING.contains(&name) => return Self::Telling,
            _ => {}
        }
        let making = known(&MAKING, name).map(Self::Once);
        let making = making.or_else(|| known(&COMPARING, name).map(Self::Comparing));
        making.or_else(|| known(&READING, name).map(Self::Read)).unwrap_or(Self::Plain)
    }

    fn result(self, name: &'static str, args: &[Value], is_strict: bool) -> Result<Value, Refusal> {
        // A built-in looks through what it does not take, to say so. Values share their parts, so that one can be far longer
        // than the memory it takes.
        let is_told_of = matches!(self, Self::Telling) && is_told_of(name, args);
        if !is_told_of && given(args) > LONGEST_JSON {
            return Err(Refusal::TooMuch(name));
        }
        let paid = match self {
            Self::Comparing(estimate) => Some(estimate(args)),
            Self::Walk => Some(walked(&args[0])),
            _ => None,
        };
        paid.inspect(|values| budget::spend_on_comparing(*values));
        // The interpreter stops at its next step.
        if budget::is_exceeded() {
            return Ok(Value::Undefined);
        }
        let value = match self {
            Self::Telling => return called(name, args, is_strict),
            Self::Once(estimate) => return make(name, args, estimate(args), is_strict),
            Self::Read(read) => {
                let Value::String(text) = &args[0] else { return called(name, args, is_strict) };
                budget::spend_on_text(text.len());
                read(text)
                    .map_err(|error| Refusal::Arguments(format!("`{name}` cannot read its text: {error}")))?
            }
            Self::ReplaceEach => return replace_each(name, args, is_strict),
            Self::Patch => patched(name, args, is_strict)?,
            Self::Find => {
                pay_for_places(&args[0], &args[1], args.get(2));
                if budget::is_exceeded() { Value::Undefined } else { called(name, args, is_strict)? }
            }
            Self::Plain | Self::Comparing(_) | Self::Walk => checked(name, args, is_strict)?,
        };
        budget::spend_on_text(made(&value));
        Ok(value)
    }
}

/// Whether a built-in that says something of a value takes this one.
fn is_told_of(name: &str, args: &[Value]) -> bool {
    let is_plain = |value: &Value| matches!(value, Value::String(_) | Value::Null | Value::Bool(_));
    match name {
        "count" => count(&args[0]) > 0,
        "max" | "min" => false,
        "object.get" => matches!(&args[0], Value::Object(_)) && is_plain(&args[1]),
        _ => true,
    }
}

/// Calls a built-in, where its values are not ones that it does not bear.
fn checked(name: &'static str, args: &[Value], is_strict: bool) -> Result<Value, Refusal> {
    match (name, args) {
        // An empty text is found before and behind each character.
        ("strings.count", [Value::String(text), Value::String(part)]) if part.is_empty() => {
            Ok(Value::from(text.chars().count() + 1))
        }
        ("object.subset", [Value::Array(_), Value::Array(part)]) if part.is_empty() => Ok(Value::from(true)),
        ("regex.template_match", [Value::String(template), Value::String(text), Value::String(begin), _])
            if template.find(&**begin).is_some_and(|at| !text.starts_with(&template[..at])) =>
        {
            Ok(Value::from(false))
        }
        // Anything that can be read as JSON is taken for a place in a list, a power of ten with any number of digits too.
        ("json.filter", [_, paths]) if has_value_as_place(paths) => Err(Refusal::Fault(name)),
        _ => called(name, args, is_strict),
    }
}

/// Whether a part of a path is a whole value, as JSON.
fn has_value_as_place(paths: &Value) -> bool {
    let is_value = |part: &str| {
        part.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(part).is_ok()
    };
    let has_one = |path: &Value| match path {
        Value::String(path) => path.split('/').any(is_value),
        Value::Array(parts) => parts.iter().any(|part| matches!(part, Value::String(part) if is_value(part))),
        _ => false,
    };
    match paths {
        Value::Array(paths) => paths.iter().any(has_one),
        Value::Set(paths) => paths.iter().any(has_one),
        _ => false,
    }
}

/// Calls a built-in whose result has about this length.
fn make(name: &'static str, args: &[Value], estimated: usize, is_strict: bool) -> Result<Value, Refusal> {
    if estimated > LONGEST_TEXT {
        return Err(Refusal::TooLong(name));
    }
    budget::spend_on_text(estimated);
    if name == "regex.replace" {
        pay_for_places(&args[1], &args[0], None);
    }
    if budget::is_exceeded() {
        return Ok(Value::Undefined);
    }
    let made = called(name, args, is_strict)?;
    match &made {
        // Some signs become several.
        Value::String(text) if text.len() > LONGEST_TEXT => Err(Refusal::TooLong(name)),
        _ => Ok(made),
    }
}

fn replace_each(name: &'static str, args: &[Value], is_strict: bool) -> Result<Value, Refusal> {
    let (Ok(pairs), Value::String(_)) = (args[0].as_object(), &args[1]) else {
        return called(name, args, is_strict);
    };
    let mut text = args[1].clone();
    for (from, to) in pairs.iter_sorted() {
        let step = [text, from.clone(), to.clone()];
        text = make("replace", &step, replaced(&step[0], from, to), is_strict)?;
        if text == Value::Undefined {
            break;
        }
    }
    Ok(text)
}

/// Each change copies the document, and may double it.
fn patched(name: &'static str, args: &[Value], is_strict: bool) -> Result<Value, Refusal> {
    let Value::Array(changes) = &args[1] else { return called(name, args, is_strict) };
    let mut document = args[0].clone();
    for change in changes.iter() {
        let values = count_all(&document).saturating_add(count_all(change));
        budget::spend_on_comparing(COPIED.saturating_mul(values));
        if budget::is_exceeded() {
            return Ok(Value::Undefined);
        }
        document = called(name, &[document, Value::from(vec![change.clone()])], is_strict)?;
    }
    Ok(document)
}

/// Of two texts that are compared at each place.
fn compared_texts(args: &[Value]) -> usize {
    let (Value::String(text), Value::String(part)) = (&args[0], &args[1]) else { return 0 };
    text.len().saturating_mul(part.len()) / BYTES_PER_VALUE
}

fn replaced(text: &Value, from: &Value, to: &Value) -> usize {
    let (Value::String(text), Value::String(from), Value::String(to)) = (text, from, to) else { return 0 };
    let places = if from.is_empty() { text.len() + 1 } else { text.matches(&**from).count() };
    text.len().saturating_add(places.saturating_mul(to.len()))
}

/// With a pattern. What an expansion puts in a place is a part of the match, so all of them are no longer than the text.
fn replaced_by_pattern(args: &[Value]) -> usize {
    let (Value::String(text), Value::String(to)) = (&args[0], &args[2]) else { return 0 };
    let with = |places: usize| {
        let expanded = text.len().saturating_mul(to.matches('$').count());
        text.len().saturating_add(places.saturating_mul(to.len())).saturating_add(expanded)
    };
    let most = with(text.len() + 1);
    if most <= LONGEST_TEXT {
        return most;
    }
    with(pay_for_places(&args[1], &args[0], None))
}

/// The widths in a format: to how much its parts are filled up.
fn widths(format: &Value) -> usize {
    let Value::String(format) = format else { return 0 };
    let digits = |part: &str| part.trim_start_matches('.').chars().take_while(char::is_ascii_digit).collect();
    let parts = format.split('%').skip(1).map(digits);
    let widths = parts.filter(|digits: &String| !digits.is_empty()).map(|d| d.parse().unwrap_or(usize::MAX));
    widths.fold(0, usize::saturating_add)
}
