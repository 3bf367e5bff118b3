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
    absent: Vec<String>,
}

impl<'d> Section<'d> {
    pub(super) fn new(mapping: Option<Mapping<'d>>) -> Self {
        Self { mapping, known: Vec::new(), absent: Vec::new() }
    }

    fn get(&mut self, key: &'static str) -> Option<Value<'d>> {
        self.known.push(key);
        let value = self.mapping.as_ref().and_then(|mapping| mapping.get(key));
        if value.is_none() {
            self.absent.push(key.to_owned());
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
        self.items(key, into, variables);
    }

    /// Absolute paths.
    pub(super) fn paths(&mut self, key: &'static str, into: &mut Vec<PathBuf>) {
        self.items(key, into, absolute);
    }

    /// A list, which takes the place of what was there.
    fn items<T>(&mut self, key: &'static str, into: &mut Vec<T>, read: fn(&Value<'_>) -> Option<T>) {
        if let Some(items) = self.get(key).and_then(|value| value.list()) {
            *into = items.iter().filter_map(read).collect();
        }
    }

    /// The beginning of names of variables, or `null` for none.
    pub(super) fn variable_prefix(&mut self, key: &'static str, into: &mut Option<String>) {
        self.optional(key, into, variable_prefix);
    }

    /// An absolute path, or `null` for none.
    pub(super) fn path(&mut self, key: &'static str, into: &mut Option<PathBuf>) {
        self.optional(key, into, absolute);
    }

    /// A value of some kind, or `null` for none.
    pub(super) fn optional<T>(
        &mut self,
        key: &'static str,
        into: &mut Option<T>,
        read: fn(&Value<'_>) -> Option<T>,
    ) {
        match self.get(key) {
            Some(value) if value.is_null() => *into = None,
            Some(value) => *into = read(&value).or_else(|| into.take()),
            None => {}
        }
    }

    /// A value of some kind.
    pub(super) fn choice<T>(&mut self, key: &'static str, into: &mut T, read: fn(&Value<'_>) -> Option<T>) {
        if let Some(found) = self.get(key).and_then(|value| read(&value)) {
            *into = found;
        }
    }

    /// A mapping in this one.
    pub(super) fn section(&mut self, key: &'static str, read: impl FnOnce(&mut Section<'d>)) {
        let mut inner = Section::new(self.get(key).and_then(|value| value.mapping()));
        read(&mut inner);
        self.absent.extend(inner.finish().into_iter().map(|inner| format!("{key}.{inner}")));
    }

    /// Mappings under names of the file's own, which take the place of those that were there.
    pub(super) fn entries<K: Ord, T>(
        &mut self,
        key: &'static str,
        into: &mut BTreeMap<K, T>,
        mut read: impl FnMut(&Value<'d>, &mut Section<'d>) -> Option<(K, T)>,
    ) {
        let Some(entries) = self.get(key).and_then(|value| value.mapping()) else { return };
        let entry = |value: Value<'d>| {
            let mut section = Section::new(Some(value.mapping()?));
            let entry = read(&value, &mut section);
            section.finish();
            entry
        };
        *into = entries.values().filter_map(entry).collect();
    }

    /// Records the keys nobody asked for, and tells the paths of those that were asked for and absent, such as
    /// `limits.payload`.
    pub(super) fn finish(self) -> Vec<String> {
        if let Some(mapping) = &self.mapping {
            mapping.allow_only(&self.known);
        }
        self.absent
    }
}

/// A path that begins with `/`.
pub(super) fn absolute(value: &Value<'_>) -> Option<PathBuf> {
    let text = value.text()?;
    if text.starts_with('/') && !text.contains('\0') {
        return Some(PathBuf::from(text));
    }
    let message = format!("`{}` must be an absolute path", value.name());
    value.error("path", message, "begin it with `/`");
    None
}

fn variables(value: &Value<'_>) -> Option<String> {
    let text = value.text()?;
    if is_variable(text.strip_suffix('*').unwrap_or(text)) {
        return Some(text.to_owned());
    }
    let message = format!("`{}` has no names of variables here", value.name());
    value.error("variable", message, "write `NAME` or `PREFIX_*`");
    None
}

fn variable_prefix(value: &Value<'_>) -> Option<String> {
    let text = value.text()?;
    if is_variable(text) {
        return Some(text.to_owned());
    }
    let message = format!("`{}` is no beginning of a variable's name", value.name());
    value.error("variable", message, "write it such as `HOOKYARD_SECRET_`, or `null` for none");
    None
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn measured<T>(value: &Value<'_>, into: &mut T, read: fn(&str) -> Option<T>, what: &str, help: &str) {
    match value.as_text().and_then(read) {
        Some(found) => *into = found,
        None => value.error("quantity", format!("`{}` must be {what}", value.name()), help),
    }
}
