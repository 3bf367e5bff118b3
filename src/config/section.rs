//! Reading one mapping of a settings file into fields that already hold their defaults. Refuses keys that
//! nobody asked for.

use std::{collections::BTreeMap, num::NonZeroUsize, path::PathBuf, time::Duration};

use super::quantity;
use crate::dialect::{Mapping, Mistake, Value};

/// The largest count: more than any machine has of anything, and safe for every counter.
const LARGEST_COUNT: i64 = 1_000_000_000;

/// A mapping of a settings file, and the keys that were asked for.
pub(super) struct Section<'d> {
    mapping: Option<Mapping<'d>>,
    known: Vec<&'static str>,
    absent: Vec<&'static str>,
}

impl<'d> Section<'d> {
    pub(super) fn new(mapping: Option<Mapping<'d>>) -> Self {
        Self { mapping, known: Vec::new(), absent: Vec::new() }
    }

    fn get(&mut self, key: &'static str) -> Option<Value<'d>> {
        self.known.push(key);
        let value = self.mapping.as_ref().and_then(|mapping| mapping.get(key));
        if value.is_none() {
            self.absent.push(key);
        }
        value
    }

    /// A value, read by whoever asks; `null` counts as left out.
    pub(super) fn value(&mut self, key: &'static str) -> Option<Value<'d>> {
        self.get(key).filter(|value| !value.is_null())
    }

    /// The same for a key that must be there.
    pub(super) fn required(&mut self, key: &'static str, message: &str, help: &str) -> Option<Value<'d>> {
        let value = self.value(key);
        if let Some(mapping) = self.mapping.as_ref().filter(|_| value.is_none()) {
            let mistake = Mistake::error("missing-key", mapping.spot(), message);
            mapping.document().report(mistake.help(help));
        }
        value
    }

    /// A duration with its unit.
    pub(super) fn duration(&mut self, key: &'static str, into: &mut Duration) {
        let Some(value) = self.get(key) else { return };
        measured(
            &value,
            into,
            quantity::duration,
            "a duration",
            "write it with its unit: `500ms`, `60s`, `10m`, `1h`",
        );
    }

    /// A size with its unit.
    pub(super) fn size(&mut self, key: &'static str, into: &mut usize) {
        let Some(value) = self.get(key) else { return };
        measured(
            &value,
            into,
            quantity::size,
            "a size",
            "write it with its unit: `512B`, `64KiB`, `16MiB`, `1GiB`",
        );
    }

    /// A number of things, at least one.
    pub(super) fn count(&mut self, key: &'static str, into: &mut NonZeroUsize) {
        let Some(value) = self.get(key) else { return };
        let Some(number) = value.integer() else { return };
        let count =
            usize::try_from(number).ok().filter(|_| number <= LARGEST_COUNT).and_then(NonZeroUsize::new);
        match count {
            Some(count) => *into = count,
            None => {
                value.error("count", format!("`{key}` is out of range"), format!("use 1 to {LARGEST_COUNT}"));
            }
        }
    }

    /// A flag.
    pub(super) fn flag(&mut self, key: &'static str, into: &mut bool) {
        if let Some(flag) = self.get(key).and_then(|value| value.flag()) {
            *into = flag;
        }
    }

    /// Names of variables, each perhaps with a `*` at its end.
    pub(super) fn variables(&mut self, key: &'static str, into: &mut Vec<String>) {
        let items = self.get(key).and_then(|value| value.list()).unwrap_or_default();
        for item in items {
            let Some(text) = item.text() else { continue };
            let name = text.strip_suffix('*').unwrap_or(text);
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(is_name)
            {
                item.error(
                    "variable",
                    format!("`{key}` has no names of variables here"),
                    "write `NAME` or `PREFIX_*`",
                );
            } else {
                into.push(text.to_owned());
            }
        }
    }

    /// The beginning of names of variables, or `null` for none.
    pub(super) fn variable_prefix(&mut self, key: &'static str, into: &mut Option<String>) {
        let Some(value) = self.get(key) else { return };
        if value.is_null() {
            *into = None;
            return;
        }
        let Some(text) = value.text() else { return };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) || !text.chars().all(is_name) {
            let message = format!("`{key}` is no beginning of a variable's name");
            value.error("variable", message, "write it such as `HOOKYARD_SECRET_`, or `null` for none");
        } else {
            *into = Some(text.to_owned());
        }
    }

    /// An absolute path, or `null` for none.
    pub(super) fn path(&mut self, key: &'static str, into: &mut Option<PathBuf>) {
        let Some(value) = self.get(key) else { return };
        if value.is_null() {
            *into = None;
            return;
        }
        let Some(text) = value.text() else { return };
        if text.starts_with('/') && !text.contains('\0') {
            *into = Some(PathBuf::from(text));
        } else {
            value.error(
                "path",
                format!("`{key}` must be an absolute path"),
                "begin it with `/`, or write `null` for none",
            );
        }
    }

    /// A mapping in this one.
    pub(super) fn section(&mut self, key: &'static str, read: impl FnOnce(&mut Section<'d>)) {
        let mut inner = Section::new(self.get(key).and_then(|value| value.mapping()));
        read(&mut inner);
        self.absent.extend(inner.finish());
    }

    /// Mappings under names of the file's own.
    pub(super) fn entries<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&Value<'d>, &mut Section<'d>) -> Option<T>,
    ) -> BTreeMap<String, T> {
        let Some(entries) = self.get(key).and_then(|value| value.mapping()) else { return BTreeMap::new() };
        let entry = |value: Value<'d>| {
            let mut section = Section::new(Some(value.mapping()?));
            let entry = read(&value, &mut section);
            section.finish();
            Some((value.name().to_owned(), entry?))
        };
        entries.values().filter_map(entry).collect()
    }

    /// Records the keys nobody asked for, and tells which were asked for and absent.
    pub(super) fn finish(self) -> Vec<&'static str> {
        if let Some(mapping) = &self.mapping {
            mapping.allow_only(&self.known);
        }
        self.absent
    }
}

fn measured<T>(value: &Value<'_>, into: &mut T, read: fn(&str) -> Option<T>, what: &str, help: &str) {
    match value.as_text().and_then(read) {
        Some(found) => *into = found,
        None => value.error("quantity", format!("`{}` must be {what}", value.name()), help),
    }
}
