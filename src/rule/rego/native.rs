//! Calls of the interpreter's own built-ins.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::OnceLock,
};

use regex::RegexBuilder;
use regorus::{
    LimitError, Value,
    unstable::{BUILTINS, Expr, Ref, Source, Span},
};

use super::{
    budget,
    mistake::read_error,
    size::{MOST_DIGITS, PART},
};

/// The largest compiled pattern, in bytes, as the interpreter has it.
const LARGEST: usize = 100 << 10;

/// In a shorter text, everything is found soon.
const SHORT: usize = 4 << 10;

/// Why a built-in has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// A text, a list or a number that is too long to be made.
    #[error(
        "`{0}` would make something too long; at most 1 MiB of text, 65,536 elements and {MOST_DIGITS} digits are allowed"
    )]
    TooLong(&'static str),
    /// A value that is too long to be looked through.
    #[error(
        "`{0}` is given something too long; at most 16 MiB and numbers of {MOST_DIGITS} digits are allowed"
    )]
    TooMuch(&'static str),
    /// A limit of the interpreter.
    #[error("{0}")]
    Limit(LimitError),
    /// The built-in does not bear these arguments.
    #[error("`{0}` cannot be called with these values")]
    Fault(&'static str),
    /// It says that it does not take these arguments. Policies may leave that out.
    #[error("{0}")]
    Arguments(String),
}

/// What a built-in of the interpreter makes of its arguments. One that is not `strict` has no value for what it does not take.
pub(super) fn called(name: &'static str, args: &[Value], is_strict: bool) -> Result<Value, Refusal> {
    let (Some((body, _)), Some((span, places))) = (BUILTINS.get(name), no_place()) else {
        return Err(Refusal::Arguments(format!("there is no function `{name}`")));
    };
    let places = places.get(..args.len()).unwrap_or_default();
    // Some take a text to pieces at places that it does not have.
    let called = catch_unwind(AssertUnwindSafe(|| body(span, places, args, is_strict)));
    called.map_err(|_panic| Refusal::Fault(name))?.map_err(|error| match error.downcast::<LimitError>() {
        Ok(limit) => Refusal::Limit(limit),
        // The place that it names is none of the policy. The interpreter adds that of the call.
        Err(error) => Refusal::Arguments(read_error(&error.to_string()).1),
    })
}

/// A place that is in no policy, for built-ins that would say where an argument stands.
fn no_place() -> Option<&'static (Span, [Ref<Expr>; 4])> {
    static PLACE: OnceLock<Option<(Span, [Ref<Expr>; 4])>> = OnceLock::new();
    let made = PLACE.get_or_init(|| {
        let source = Source::from_contents("argument".to_owned(), "_".to_owned()).ok()?;
        let span = Span { source, line: 1, col: 1, start: 0, end: 1 };
        let place = || Ref::new(Expr::Null { span: span.clone(), value: Value::Null, eidx: 0 });
        let places = [place(), place(), place(), place()];
        Some((span, places))
    });
    made.as_ref()
}

/// Finds what a built-in is going to find, as long as there are steps and time for it: from each place, the rest of the text may be
/// looked through.
///
/// Returns the number of places, or how many there are at most.
pub(super) fn pay_for_places(pattern: &Value, text: &Value, most: Option<&Value>) -> usize {
    let (Value::String(pattern), Value::String(text)) = (pattern, text) else { return 0 };
    if text.len() <= SHORT {
        return text.len() + 1;
    }
    let most = most.and_then(|most| most.as_i64().ok()).and_then(|most| usize::try_from(most).ok());
    let most = most.unwrap_or(usize::MAX);
    // What is no pattern is refused by the built-in.
    let Ok(pattern) = RegexBuilder::new(pattern).size_limit(LARGEST).build() else { return 0 };
    let groups = pattern.captures_len();
    let mut places = 0;
    for found in pattern.find_iter(text).take(most) {
        places += 1;
        budget::spend_on_text(groups * (found.len() + PART));
        if !budget::spend_step() {
            break;
        }
    }
    places
}
