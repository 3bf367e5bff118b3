//! What a key of the settings, a value and a mapping of keys are: how each is read.

use std::collections::BTreeMap;

use crate::dialect::{Mapping, Value};

/// The type of a key: how its value is read into a field.
pub(super) trait KeyType {
    /// The type of the field.
    type Field;

    /// Reads a value into a field, which keeps its value if this one is wrong. Mistakes are recorded in the document.
    fn read(value: &Value<'_>, field: &mut Self::Field);

    /// Reads a key of a mapping, if it is there.
    fn read_key(mapping: &Mapping<'_>, key: &str, _example: Option<&str>, field: &mut Self::Field) {
        if let Some(value) = mapping.get(key) {
            Self::read(&value, field);
        }
    }

    /// Appends the path of the key, such as `limits.runs`, and then those of the keys in it.
    fn push_paths(path: String, paths: &mut Vec<String>) {
        paths.push(path);
    }
}

/// The type of a key that holds one value.
pub(super) trait ValueType {
    /// The type of the field.
    type Field;

    /// Returns the value, or `None` if it is wrong, which is recorded in the document.
    fn parse(value: &Value<'_>) -> Option<Self::Field>;
}

impl<T: ValueType> KeyType for T {
    type Field = T::Field;

    fn read(value: &Value<'_>, field: &mut Self::Field) {
        if let Some(parsed) = T::parse(value) {
            *field = parsed;
        }
    }
}

/// The keys of one mapping.
pub(super) trait KeySet: Sized {
    /// The names of the keys, in the order of their declaration.
    const NAMES: &'static [&'static str];

    /// Every key at its default.
    fn declared() -> Self;

    /// Reads the keys that a mapping has. Mistakes are recorded in the document.
    fn read_keys(&mut self, mapping: &Mapping<'_>);

    /// Appends the paths of all keys, each section before the keys in it.
    fn push_key_paths(prefix: &str, paths: &mut Vec<String>);
}

/// What stands under names of the file's own, such as the workspaces under their ids.
pub(super) trait NamedEntry: KeySet {
    /// The type of the names.
    type Name: Ord;

    /// The name of an entry, or `None` if it is wrong, which is recorded in the document.
    fn name(entry: &Value<'_>) -> Option<Self::Name>;
}

/// A mapping of entries replaces the one before it as a whole.
impl<T: NamedEntry> KeyType for BTreeMap<T::Name, T> {
    type Field = Self;

    fn read(value: &Value<'_>, field: &mut Self) {
        let Some(entries) = value.mapping() else { return };
        field.clear();
        for entry in entries.values() {
            let Some(mapping) = entry.mapping() else { continue };
            let name = T::name(&entry);
            let mut keys = T::declared();
            keys.read_keys(&mapping);
            field.extend(name.map(|name| (name, keys)));
        }
    }
}
