//! `jq` where it reads one field, and where it tests it.

use crate::cli::guard::{
    pattern::{ForeignPattern, LetterCase, PatternFlavour, PatternPlace, SystemCharacters},
    text::{AbsentField, FieldTest, GuardField, GuardText, Unclear},
};

/// What `jq` prints with these arguments: a field, and a line's end.
pub(super) fn printed(arguments: &[&str]) -> Result<GuardText, Unclear> {
    let (filter, flags) = filter_of(arguments)?;
    if !flags.contains('r') || flags.contains('e') {
        return Unclear::new("`jq` without `-r`, or with `-e`");
    }
    Ok(GuardText::field(field(filter)?).with(GuardText::literal("\n")))
}

/// The test that `jq -e` makes with these arguments.
pub(super) fn tested(arguments: &[&str]) -> Result<(GuardField, FieldTest), Unclear> {
    let (filter, flags) = filter_of(arguments)?;
    let Some((path, test)) = filter.split_once('|').filter(|_| flags.contains('e')) else {
        return Unclear::new("`jq` that tests nothing");
    };
    let field = field(path.trim().trim_start_matches('(').trim_end_matches(')'))?;
    let test = test.trim();
    let Some((name, argument)) = test.strip_suffix(')').and_then(|test| test.split_once('(')) else {
        return Unclear::new("a test of `jq` that is not understood");
    };
    let argument = argument.trim();
    let Ok(text) = serde_json::from_str::<String>(argument) else {
        return Unclear::new("a test of `jq` with more than a text");
    };
    // A field that is null cannot be tested: `jq` ends with an error.
    let field = GuardField { absent: AbsentField::Text(String::new()), ..field };
    let test = match name.trim() {
        "test" => ForeignPattern {
            text: &text,
            flavour: PatternFlavour::Jq,
            place: PatternPlace::Anywhere,
            case: LetterCase::Matters,
            characters: SystemCharacters::Unicode,
        }
        .test()?,
        "contains" => FieldTest::Contains(text),
        "startswith" => FieldTest::StartsWith(text),
        "endswith" => FieldTest::EndsWith(text),
        _ => return Unclear::new("a test of `jq` that is not understood"),
    };
    if test.holds("") { Unclear::new("a test of `jq` of what is not there") } else { Ok((field, test)) }
}

/// The filter, and the letters of the flags.
fn filter_of<'a>(arguments: &[&'a str]) -> Result<(&'a str, String), Unclear> {
    let mut flags = String::new();
    let mut filters = Vec::new();
    for argument in arguments {
        match *argument {
            "--raw-output" => flags.push('r'),
            "--exit-status" => flags.push('e'),
            flag if flag.starts_with('-') => {
                let letters = &flag[1..];
                if letters.is_empty() || !letters.chars().all(|c| "recM".contains(c)) {
                    return Unclear::new(format!("`jq {flag}`"));
                }
                flags.push_str(letters);
            }
            filter => filters.push(filter),
        }
    }
    match filters.as_slice() {
        [filter] => Ok((filter, flags)),
        _ => Unclear::new("`jq` with more than a filter"),
    }
}

/// The field that a filter is: `.a.b`, `.a.b // ""`.
fn field(filter: &str) -> Result<GuardField, Unclear> {
    let (path, absent) = match filter.split_once("//") {
        None => (filter, AbsentField::Text("null".to_owned())),
        Some((path, other)) if other.trim() == "empty" => (path, AbsentField::Text(String::new())),
        Some((path, other)) => match serde_json::from_str::<String>(other.trim()) {
            Ok(text) => (path, AbsentField::Text(text)),
            Err(_) => return Unclear::new("it reads another field where one is missing"),
        },
    };
    let Some(keys) = path.trim().strip_prefix('.') else { return Unclear::new("a filter of `jq`") };
    let is_key = |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let keys: Vec<&str> = keys.split('.').map(|key| key.strip_suffix('?').unwrap_or(key)).collect();
    if keys.iter().all(|key| is_key(key)) {
        Ok(GuardField::new(&keys, absent))
    } else {
        Unclear::new("a filter of `jq` that is not understood")
    }
}
