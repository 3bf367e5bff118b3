//! JSON values kept as the text they came in, checked once and strictly: duplicate keys, unpaired surrogates, numbers
//! beyond a double and nesting beyond 128 are errors.
//!
//! A payload part nobody patches goes from the host to the hooks byte for byte: numbers keep their digits,
//! and nothing is parsed into a tree. Where a part is patched, only the levels that merge are taken apart.

use std::{borrow::Cow, collections::HashSet, fmt, sync::Arc};

use serde::{
    Deserialize, Serialize, Serializer,
    de::{self, DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// From how many keys on an object's keys are looked up in a set instead of a list.
const MANY_KEYS: usize = 16;

/// One valid JSON value as text; cheap to clone.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

/// Why a text is not acceptable JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at line {line} column {column}")]
pub struct JsonError {
    /// What is wrong.
    pub message: String,
    /// Line, from 1; 0 if the value did not come from a text.
    pub line: usize,
    /// Column in bytes, from 1; 0 if the value did not come from a text.
    pub column: usize,
}

/// JSON with `\ufffd` in place of each escape of an unpaired surrogate; none if there is no such escape.
pub(super) fn with_paired_surrogates(json: &[u8]) -> Option<Vec<u8>> {
    memchr::memmem::find(json, b"\\u")?;
    let mut mended: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) = json.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        let escape = at + found;
        at = match escaped_unit(json, escape) {
            Some(0xd800..=0xdbff) if matches!(escaped_unit(json, escape + 6), Some(0xdc00..=0xdfff)) => {
                escape + 12
            }
            Some(0xd800..=0xdfff) => {
                mended.get_or_insert_with(|| json.to_vec())[escape + 2..escape + 6].copy_from_slice(b"fffd");
                escape + 6
            }
            _ => escape + 2,
        };
    }
    mended
}

/// The UTF-16 code unit of an escape that begins at a place.
fn escaped_unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

impl Json {
    /// Takes a text as one JSON value.
    ///
    /// Returns an error with its place if the text is not JSON, if anything follows the value, or if the
    /// strict check of this module refuses it.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        check(text)?;
        let raw = serde_json::from_str::<&RawValue>(text).map_err(|e| JsonError::from(&e))?;
        Ok(Self(Arc::from(raw.to_owned())))
    }

    /// The JSON of a serialisable value.
    ///
    /// Returns an error if the value has no JSON form, such as a map whose keys are not strings.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, JsonError> {
        let raw = serde_json::value::to_raw_value(value).map_err(|e| JsonError::from(&e))?;
        Ok(Self(raw.into()))
    }

    /// A part of a text that passed [`check`] as a whole.
    pub(crate) fn checked(part: &RawValue) -> Self {
        Self(Arc::from(part.to_owned()))
    }

    /// The value as raw JSON of its own.
    pub(super) fn into_raw(self) -> Box<RawValue> {
        self.0.as_ref().to_owned()
    }

    /// The value as text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }

    /// Reads the value as a `T`.
    ///
    /// Returns an error if the value has another shape.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, JsonError> {
        serde_json::from_str(self.as_str()).map_err(|e| JsonError::from(&e))
    }

    /// The fields of an object in the order they were written, or `None` for any other value.
    pub fn fields(&self) -> Option<JsonFields<'_>> {
        serde_json::from_str(self.as_str()).ok()
    }

    /// What kind of value this is, as an error message names it.
    pub fn kind(&self) -> &'static str {
        match self.as_str().as_bytes().first() {
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        }
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq for Json {
    /// Equal texts; `1.0` and `1` differ.
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// The fields of one object, in the order they were written.
#[derive(Debug, Default)]
pub struct JsonFields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> JsonFields<'a> {
    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// Replaces a field in its place, or appends it.
    pub fn set(&mut self, name: Cow<'a, str>, value: &'a RawValue) {
        match self.0.iter_mut().find(|(key, _)| *key == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// All fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), *value))
    }
}

impl Serialize for JsonFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonFields<'a> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = JsonFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(key) = map.next_key::<Key<'de>>()? {
                    fields.push((key.0, map.next_value()?));
                }
                Ok(JsonFields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// Checks that a text is one acceptable JSON value.
///
/// Returns an error with its place if it is not.
pub(crate) fn check(text: &str) -> Result<(), JsonError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Strict.deserialize(&mut deserializer).and_then(|()| deserializer.end()).map_err(|e| JsonError::from(&e))
}

impl From<&serde_json::Error> for JsonError {
    fn from(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let message = text.strip_suffix(&place).unwrap_or(&text).to_owned();
        Self { message, line: error.line(), column: error.column() }
    }
}

/// An object key, borrowed where it has no escapes.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// Walks a value and keeps nothing of it.
#[derive(Clone, Copy)]
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = SeenKeys::default();
        while let Some(Key(key)) = map.next_key()? {
            if let Some(twice) = seen.add(key) {
                return Err(de::Error::custom(format_args!("duplicate key {twice:?}")));
            }
            map.next_value_seed(self)?;
        }
        Ok(())
    }
}

/// The keys of one object so far. Hooks and hosts disagree on which of two equal keys counts, so a guard
/// could be shown another value than the one that is run.
#[derive(Default)]
struct SeenKeys<'de> {
    few: Vec<Cow<'de, str>>,
    many: HashSet<Cow<'de, str>>,
}

impl<'de> SeenKeys<'de> {
    /// Adds a key, or hands it back if it was there.
    fn add(&mut self, key: Cow<'de, str>) -> Option<Cow<'de, str>> {
        if self.few.contains(&key) || self.many.contains(&key) {
            return Some(key);
        }
        if self.few.len() < MANY_KEYS {
            self.few.push(key);
        } else {
            self.many.insert(key);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unpaired_surrogate_is_replaced_and_nothing_else() {
        let cases = [
            (r#"{"a":"x\ud83d"}"#, Some(r#"{"a":"x\ufffd"}"#)),
            (r#""\uDE00 \ud83d\ud83d\ude00""#, Some(r#""\ufffd \ufffd\ud83d\ude00""#)),
            (r#""\ud83d\ude00""#, None),
            (r#""\\ud83d \n \u00e9""#, None),
            (r#""\ud8"#, None),
            (r#""\"#, None),
        ];
        for (json, mended) in cases {
            assert_eq!(
                with_paired_surrogates(json.as_bytes()),
                mended.map(|text| text.as_bytes().to_vec()),
                "{json}"
            );
        }
    }

    #[test]
    fn accepts_what_every_parser_reads_alike() {
        for text in
            ["null", "-0", "18446744073709551616", "1e300", r#"{"a":[1,{"b":"\ud83d\ude00"}]}"#, " 1 "]
        {
            Json::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        }
    }

    #[test]
    fn keeps_the_digits_of_numbers() {
        let text = r#"{"big":18446744073709551616,"zero":-0,"long":0.10000000000000000000000001}"#;
        assert_eq!(Json::parse(text).unwrap().as_str(), text);
    }

    #[test]
    fn refuses_what_parsers_read_differently() {
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let wide = (0..40).map(|i| format!("\"k{i}\":1")).collect::<Vec<_>>().join(",");
        let cases = [
            (r#"{"a":1,"a":2}"#.to_owned(), "duplicate key"),
            (r#"{"a":1,"\u0061":2}"#.to_owned(), "duplicate key"),
            (format!("{{{wide},\"k30\":2}}"), "duplicate key"),
            (r#""\ud800""#.to_owned(), "hex escape"),
            (r#""\ud800\u0041""#.to_owned(), "surrogate"),
            ("1e400".to_owned(), "out of range"),
            (deep, "recursion limit"),
            ("{} {}".to_owned(), "trailing characters"),
            ("{".to_owned(), "EOF"),
            ("NaN".to_owned(), "expected"),
        ];
        for (text, why) in cases {
            let error = Json::parse(&text).expect_err(&text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
