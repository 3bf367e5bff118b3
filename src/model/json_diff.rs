//! What differs between two JSON values. Another spelling of the same value is no difference: `1.0` equals `1`, and
//! the order of keys does not count.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::{Json, JsonFields};

/// How deep differences are looked for. Each level is parsed again; below this a value differs as a whole.
pub(crate) const MAX_DEPTH: usize = 16;

/// From here on not every whole number is a double of its own.
const EXACT_DOUBLES: f64 = 9_007_199_254_740_992.0;

/// One element that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonChange<'a> {
    /// The steps to it from the top; none for the whole value.
    pub(crate) path: Vec<PathStep>,
    /// What it was, as JSON; `None` if it is new.
    pub(crate) before: Option<&'a str>,
    /// What it is now, as JSON; `None` if it is removed.
    pub(crate) after: Option<&'a str>,
}

/// One step on the way to an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathStep {
    /// Into a field of an object.
    Key(String),
    /// To an element of an array, from 0.
    Index(usize),
}

/// How two arrays of different lengths are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArrayDiff {
    /// What is the same at both ends is left out, so that one more element shifts no other.
    Aligned,
    /// Only as a whole.
    #[cfg_attr(not(any(feature = "daemon", test)), expect(dead_code, reason = "only the audit compares so"))]
    Whole,
}

/// The differences between two values, in the order of the earlier one, at most `limit` of them. Without an earlier
/// value the later one is new as a whole.
pub(crate) fn changes<'a>(
    before: Option<&'a Json>,
    after: &'a Json,
    arrays: ArrayDiff,
    limit: usize,
) -> Vec<JsonChange<'a>> {
    let mut diff = Diff { arrays, limit, path: Vec::new(), changes: Vec::new() };
    match before {
        Some(before) => diff.compare(before.as_str(), after.as_str()),
        None => diff.add(None, Some(after.as_str())),
    }
    diff.changes
}

/// The differences so far, and where the comparison is.
struct Diff<'a> {
    arrays: ArrayDiff,
    limit: usize,
    path: Vec<PathStep>,
    changes: Vec<JsonChange<'a>>,
}

impl<'a> Diff<'a> {
    fn add(&mut self, before: Option<&'a str>, after: Option<&'a str>) {
        if self.changes.len() < self.limit {
            self.changes.push(JsonChange { path: self.path.clone(), before, after });
        }
    }

    fn add_below(&mut self, step: PathStep, before: Option<&'a str>, after: Option<&'a str>) {
        self.path.push(step);
        self.add(before, after);
        self.path.pop();
    }

    fn compare_below(&mut self, step: PathStep, before: &'a str, after: &'a str) {
        self.path.push(step);
        self.compare(before, after);
        self.path.pop();
    }

    fn compare(&mut self, before: &'a str, after: &'a str) {
        if before == after || self.changes.len() >= self.limit {
            return;
        }
        let depth = self.path.len();
        match (JsonShape::of(before), JsonShape::of(after)) {
            (JsonShape::Object(old), JsonShape::Object(new)) if depth < MAX_DEPTH => {
                self.compare_fields(&old, &new);
            }
            (JsonShape::Array(old), JsonShape::Array(new))
                if depth < MAX_DEPTH && (self.arrays == ArrayDiff::Aligned || old.len() == new.len()) =>
            {
                self.compare_elements(&old, &new);
            }
            _ if equal(before, after, depth) => {}
            _ => self.add(Some(before), Some(after)),
        }
    }

    fn compare_fields(&mut self, old: &JsonFields<'a>, new: &JsonFields<'a>) {
        let were = by_key(old);
        let are = by_key(new);
        for (key, was) in old.iter() {
            match are.get(key) {
                Some(is) if *is == was.get() => {}
                Some(is) => self.compare_below(PathStep::Key(key.to_owned()), was.get(), is),
                None => self.add_below(PathStep::Key(key.to_owned()), Some(was.get()), None),
            }
        }
        for (key, is) in new.iter().filter(|(key, _)| !were.contains_key(key)) {
            self.add_below(PathStep::Key(key.to_owned()), None, Some(is.get()));
        }
    }

    fn compare_elements(&mut self, old: &[&'a RawValue], new: &[&'a RawValue]) {
        let depth = self.path.len() + 1;
        let same = |(a, b): &(&&RawValue, &&RawValue)| equal(a.get(), b.get(), depth);
        let start = old.iter().zip(new).take_while(same).count();
        let end = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(same).count();
        let old = &old[start..old.len() - end];
        let new = &new[start..new.len() - end];
        for number in 0..old.len().max(new.len()) {
            let step = PathStep::Index(start + number);
            match (old.get(number), new.get(number)) {
                (Some(was), Some(is)) => self.compare_below(step, was.get(), is.get()),
                (was, is) => self.add_below(step, was.map(|was| was.get()), is.map(|is| is.get())),
            }
        }
    }
}

/// A value, parsed one level deep.
enum JsonShape<'a> {
    Object(JsonFields<'a>),
    Array(Vec<&'a RawValue>),
    Text(String),
    Number,
    /// A boolean or null: these have one spelling.
    Word,
}

impl<'a> JsonShape<'a> {
    fn of(json: &'a str) -> Self {
        match json.as_bytes().first() {
            Some(b'{') => serde_json::from_str(json).map_or(Self::Word, Self::Object),
            Some(b'[') => serde_json::from_str(json).map_or(Self::Word, Self::Array),
            Some(b'"') => serde_json::from_str(json).map_or(Self::Word, Self::Text),
            Some(b't' | b'f' | b'n') => Self::Word,
            _ => Self::Number,
        }
    }
}

/// Whether two texts are the same value.
fn equal(a: &str, b: &str, depth: usize) -> bool {
    if a == b {
        return true;
    }
    match (JsonShape::of(a), JsonShape::of(b)) {
        (JsonShape::Object(a), JsonShape::Object(b)) if depth < MAX_DEPTH => {
            let a = by_key(&a);
            let b = by_key(&b);
            let is_in_b = |(key, a): (&&str, &&str)| b.get(key).is_some_and(|b| equal(a, b, depth + 1));
            a.len() == b.len() && a.iter().all(is_in_b)
        }
        (JsonShape::Array(a), JsonShape::Array(b)) if depth < MAX_DEPTH => {
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| equal(a.get(), b.get(), depth + 1))
        }
        (JsonShape::Text(a), JsonShape::Text(b)) => a == b,
        (JsonShape::Number, JsonShape::Number) => same_number(a, b),
        _ => false,
    }
}

fn by_key<'f, 'a>(fields: &'f JsonFields<'a>) -> HashMap<&'f str, &'a str> {
    fields.iter().map(|(key, value)| (key, value.get())).collect()
}

/// Whether two numbers are the same, also beyond the precision of a double.
#[expect(clippy::float_cmp, reason = "the same number has the same double")]
fn same_number(a: &str, b: &str) -> bool {
    if let (Ok(a), Ok(b)) = (a.parse::<i128>(), b.parse::<i128>()) {
        return a == b;
    }
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a == b && a.abs() < EXACT_DOUBLES,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(before: &str, after: &str, arrays: ArrayDiff, limit: usize) -> Vec<String> {
        let before = Json::parse(before).unwrap();
        let after = Json::parse(after).unwrap();
        let changes = changes(Some(&before), &after, arrays, limit);
        let step = |step: &PathStep| match step {
            PathStep::Key(key) => format!("/{key}"),
            PathStep::Index(index) => format!("/{index}"),
        };
        changes.iter().map(|change| change.path.iter().map(step).collect()).collect()
    }

    #[test]
    fn arrays_are_aligned_or_compared_as_a_whole() {
        let before = r#"{"a":[1,2,3],"b":[1,2]}"#;
        let after = r#"{"a":[0,1,2,3],"b":[1,3]}"#;
        assert_eq!(paths(before, after, ArrayDiff::Aligned, 9), ["/a/0", "/b/1"]);
        assert_eq!(paths(before, after, ArrayDiff::Whole, 9), ["/a", "/b/1"]);
    }

    #[test]
    fn another_spelling_is_no_change() {
        let before = r#"{"a":1.0,"b":"\u0041","c":[1, {"x":-0,"y":null}]}"#;
        let after = r#"{"c":[1e0,{"y":null,"x":0}],"b":"A","a":1}"#;
        assert_eq!(paths(before, after, ArrayDiff::Aligned, 9), [""; 0]);
        assert_eq!(paths("18446744073709551616", "18446744073709551617", ArrayDiff::Aligned, 9), [""]);
    }

    #[test]
    fn the_number_of_changes_has_a_limit() {
        let numbers: Vec<usize> = (0..100).collect();
        let others: Vec<usize> = (1..=100).collect();
        let before = format!("{numbers:?}");
        let after = format!("{others:?}");
        assert_eq!(paths(&before, &after, ArrayDiff::Whole, 7).len(), 7);
    }

    #[test]
    fn deep_values_differ_as_a_whole_below_the_limit() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(paths(&deep("1"), &deep("2"), ArrayDiff::Aligned, 9), ["/0".repeat(MAX_DEPTH)]);
    }
}
