//! JSON as the interpreter has it. Its own reader takes an object with the key [`ANY_NUMBER`] for a number, whatever power of ten
//! that is.

use std::{collections::BTreeMap, fmt};

use regorus::Value;
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};

/// How `serde_json` hands over a number where a program has it keep all digits.
const ANY_NUMBER: &str = "$serde_json::private::Number";

/// Reads a document. Numbers are those of 64 bits, and finite.
pub(super) fn read(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).map(|Document(value)| value)
}

/// A value that is read.
struct Document(Value);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor).map(Self)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(Document(item)) = items.next_element()? {
            read.push(item);
        }
        Ok(Value::from(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut read = BTreeMap::new();
        while let Some((Document(key), Document(value))) = fields.next_entry()? {
            if let (Value::String(name), Value::String(digits)) = (&key, &value)
                && **name == *ANY_NUMBER
            {
                return number(digits).ok_or_else(|| de::Error::custom("number out of range"));
            }
            read.insert(key, value);
        }
        Ok(Value::from(read))
    }
}

/// A number of 64 bits.
fn number(digits: &str) -> Option<Value> {
    let whole = digits.parse::<u64>().map(Value::from).or_else(|_| digits.parse::<i64>().map(Value::from));
    let float = || digits.parse::<f64>().ok().filter(|float| float.is_finite()).map(Value::from);
    whole.ok().or_else(float)
}
