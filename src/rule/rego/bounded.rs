//! Bounds what policies make: how long the result of a built-in would be, or how much it would compare, is estimated before it is
//! called, and paid for in steps.

use std::sync::OnceLock;

use regorus::{
    Engine, Value,
    unstable::{BUILTINS, Expr, Ref, Source, Span},
};

use super::{
    budget, document,
    mistake::read_error,
    size::{
        LONGEST_TEXT, MOST_DIGITS, NUMBER, count, count_all, deepest, digits_of_all, given, number,
        with_exponent,
    },
};

/// What an element of a list counts as, in bytes, so that lists have at most 65,536.
const ELEMENT: usize = 16;

/// The farthest that a number is shifted.
const FARTHEST_SHIFT: u64 = 4_096;

/// How long the result of a built-in is at most for these arguments, in bytes.
type Estimate = fn(&[Value]) -> usize;

/// The built-ins that make something longer than what they are given, with the number of their arguments. What is not one of the
/// types that they take has no length: they refuse it.
static MAKING: [(&str, u8, Estimate); 22] = [
    ("array.concat", 2, |args| ELEMENT * (count(&args[0]) + count(&args[1]))),
    ("base64.encode", 1, |args| given(args) / 3 * 4),
    ("base64url.encode", 1, |args| given(args) / 3 * 4),
    ("base64url.encode_no_pad", 1, |args| given(args) / 3 * 4),
    ("bits.lsh", 2, |args| match args[1].as_u64() {
        Ok(by) if by > FARTHEST_SHIFT => usize::MAX,
        _ => given(&args[..1]).saturating_add(NUMBER),
    }),
    ("concat", 2, |args| given(&args[1..]).saturating_add(given(&args[..1]).saturating_mul(count(&args[1])))),
    ("glob.quote_meta", 1, given),
    ("format_int", 2, given),
    ("hex.encode", 1, |args| 2 * given(args)),
    ("json.marshal", 1, given),
    ("json.marshal_with_options", 2, |args| {
        // Each line of the value has the text before it, and is indented at most as deep as the value.
        let lines = count_all(&args[0]).saturating_mul(given(&args[1..]).saturating_mul(deepest(&args[0])));
        given(&args[..1]).saturating_add(lines)
    }),
    ("lower", 1, given),
    ("product", 1, |args| number(digits_of_all(&args[0]))),
    ("regex.replace", 3, replaced_by_pattern),
    ("replace", 3, |args| replaced(&args[0], &args[1], &args[2])),
    ("sprintf", 2, |args| given(args).saturating_add(widths(&args[0]))),
    ("strings.reverse", 1, given),
    ("units.parse", 1, |args| with_exponent(&args[0])),
    ("units.parse_bytes", 1, |args| with_exponent(&args[0])),
    ("upper", 1, given),
    ("urlquery.encode", 1, given),
    ("urlquery.encode_object", 1, given),
];

/// The built-ins that compare each part of one argument with each of another: with their numbers of parts.
static COMPARING: [(&str, Estimate); 4] = [
    ("json.patch", |args| count_all(&args[0]).saturating_mul(count(&args[1]))),
    ("object.subset", |args| count_all(&args[0]).saturating_mul(count_all(&args[1]))),
    ("strings.any_prefix_match", |args| count(&args[0]).saturating_mul(count(&args[1]))),
    ("strings.any_suffix_match", |args| count(&args[0]).saturating_mul(count(&args[1]))),
];

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

/// A text, a list or a number that is too long to be made.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` would make something too long; at most 1 MiB of text, 65,536 elements and {MOST_DIGITS} digits are allowed"
)]
struct TooLongResult(&'static str);

/// What a built-in says of arguments that it does not take.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct RefusedArguments(String);

/// Puts bounded forms in the place of these built-ins.
///
/// Returns whether they are in their place.
pub(super) fn bound(engine: &mut Engine, is_strict: bool) -> bool {
    let add = |engine: &mut Engine, name: &'static str, arguments: u8, make: Make| {
        engine
            .add_extension(
                name.to_owned(),
                arguments,
                Box::new(move |args| {
                    match make.result(name, &args) {
                        Ok(value) => Ok(value),
                        Err(MadeError::TooLong(error)) => Err(error.into()),
                        // As the interpreter has it for its own built-ins.
                        Err(MadeError::Refused(_)) if !is_strict => Ok(Value::Undefined),
                        Err(MadeError::Refused(error)) => Err(error.into()),
                    }
                }),
            )
            .is_ok()
    };
    MAKING.iter().all(|(name, arguments, estimate)| add(engine, name, *arguments, Make::Once(*estimate)))
        && COMPARING.iter().all(|(name, estimate)| add(engine, name, 2, Make::Comparing(*estimate)))
        && READING.iter().all(|(name, read)| add(engine, name, 1, Make::Read(*read)))
        && add(engine, "strings.replace_n", 2, Make::ReplaceEach)
}

/// How a result is made.
#[derive(Clone, Copy)]
enum Make {
    Once(Estimate),
    Comparing(Estimate),
    Read(Read),
    /// One text after the other is replaced, each in the result of the one before.
    ReplaceEach,
}

/// Why there is no result.
enum MadeError {
    TooLong(TooLongResult),
    Refused(RefusedArguments),
}

impl Make {
    fn result(self, name: &'static str, args: &[Value]) -> Result<Value, MadeError> {
        match self {
            Self::Once(estimate) => make(name, args, estimate(args)),
            Self::Comparing(estimate) => {
                budget::spend_on_comparing(estimate(args));
                // The interpreter stops at its next step.
                if budget::is_exceeded() { Ok(Value::Undefined) } else { called(name, args) }
            }
            Self::Read(read) => match &args[0] {
                Value::String(text) => {
                    budget::spend_on_text(text.len());
                    read(text).map_err(|error| {
                        MadeError::Refused(RefusedArguments(format!(
                            "`{name}` cannot read its text: {error}"
                        )))
                    })
                }
                _ => called(name, args),
            },
            Self::ReplaceEach => replace_each(name, args),
        }
    }
}

/// Calls a built-in whose result has about this length.
fn make(name: &'static str, args: &[Value], estimated: usize) -> Result<Value, MadeError> {
    let too_long = || Err(MadeError::TooLong(TooLongResult(name)));
    if estimated > LONGEST_TEXT {
        return too_long();
    }
    budget::spend_on_text(estimated);
    let made = called(name, args)?;
    match &made {
        // Some signs become several.
        Value::String(text) if text.len() > LONGEST_TEXT => too_long(),
        _ => Ok(made),
    }
}

fn replace_each(name: &'static str, args: &[Value]) -> Result<Value, MadeError> {
    let (Ok(pairs), Value::String(_)) = (args[0].as_object(), &args[1]) else { return called(name, args) };
    let mut text = args[1].clone();
    for (from, to) in pairs.iter_sorted() {
        let step = [text, from.clone(), to.clone()];
        text = make("replace", &step, replaced(&step[0], from, to))?;
    }
    Ok(text)
}

/// What a built-in of the interpreter makes of its arguments.
fn called(name: &'static str, args: &[Value]) -> Result<Value, MadeError> {
    let refused = |why: String| MadeError::Refused(RefusedArguments(why));
    let (Some((body, _)), Some((span, places))) = (BUILTINS.get(name), no_place()) else {
        return Err(refused(format!("there is no function `{name}`")));
    };
    let places = places.get(..args.len()).unwrap_or_default();
    // The place that it names is none of the policy. The interpreter adds that of the call.
    body(span, places, args, true).map_err(|error| refused(read_error(&error.to_string()).1))
}

/// A place that is in no policy, for built-ins that would say where an argument stands.
fn no_place() -> Option<&'static (Span, [Ref<Expr>; 3])> {
    static PLACE: OnceLock<Option<(Span, [Ref<Expr>; 3])>> = OnceLock::new();
    let made = PLACE.get_or_init(|| {
        let source = Source::from_contents("argument".to_owned(), "_".to_owned()).ok()?;
        let span = Span { source, line: 1, col: 1, start: 0, end: 1 };
        let place = || Ref::new(Expr::Null { span: span.clone(), value: Value::Null, eidx: 0 });
        let places = [place(), place(), place()];
        Some((span, places))
    });
    made.as_ref()
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
    let found = called("regex.find_n", &[args[1].clone(), args[0].clone(), Value::from(-1_i64)]);
    with(found.map_or(0, |found| count(&found)))
}

/// The widths in a format: to how much its parts are filled up.
fn widths(format: &Value) -> usize {
    let Value::String(format) = format else { return 0 };
    let digits = |part: &str| part.trim_start_matches('.').chars().take_while(char::is_ascii_digit).collect();
    let parts = format.split('%').skip(1).map(digits);
    let widths = parts.filter(|digits: &String| !digits.is_empty()).map(|d| d.parse().unwrap_or(usize::MAX));
    widths.fold(0, usize::saturating_add)
}
