//! The types of values that settings have.

use std::{marker::PhantomData, net::SocketAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

use super::{
    super::{
        quantity,
        workspace_options::{BrokenFilePolicy, TrustPolicy},
    },
    keys::{KeyType, ValueType},
};
use crate::{
    dialect::{Mapping, Mistake, Value},
    model::{FilesystemAccess, HookName, HttpTarget, JsonOutput, ModelApi, NetworkAccess, SecretText},
};

/// The largest count: more than any machine has of anything, and safe for every counter.
pub(super) const LARGEST_COUNT: i64 = 1_000_000_000;

/// The longest path of a Unix socket, in bytes: the system has 108 with the byte that ends it.
pub(super) const LONGEST_SOCKET: usize = 107;

/// Bytes in a kibibyte.
pub(super) const KIB: usize = 1 << 10;

/// Bytes in a mebibyte.
pub(super) const MIB: usize = 1 << 20;

/// A number of things, for defaults.
pub(super) const fn count(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).expect("a default of at least 1")
}

/// A key that must be there. Its default is never seen.
pub(super) struct Required<T>(PhantomData<T>);

/// A key for which `null` means its default.
pub(super) struct NullIsDefault<T>(PhantomData<T>);

/// A number of bytes, written with its unit.
pub(super) struct Size;

/// An absolute path of a Unix socket.
pub(super) struct SocketPath;

/// A number from 0 to 1.
pub(super) struct Fraction;

/// A sampling temperature.
pub(super) struct Temperature;

/// The beginning of names of environment variables.
pub(super) struct VariablePrefix;

/// The name of an environment variable, or the beginning of several with a `*`.
pub(super) struct VariablePattern;

/// The name of a hook.
pub(super) struct HookNameText;

impl<T: ValueType> KeyType for Required<T> {
    type Field = T::Field;

    fn read(value: &Value<'_>, field: &mut T::Field) {
        T::read(value, field);
    }

    fn read_key(mapping: &Mapping<'_>, key: &str, example: Option<&str>, field: &mut T::Field) {
        if let Some(value) = mapping.get(key).filter(|value| !value.is_null()) {
            Self::read(&value, field);
            return;
        }
        let mistake =
            Mistake::error("missing-key", mapping.span(), format!("`{}` needs `{key}`", mapping.name()));
        mapping.document().report(match example {
            Some(example) => mistake.help(format!("write `{key}: {example}`, say")),
            None => mistake,
        });
    }
}

impl<T: ValueType> KeyType for NullIsDefault<T> {
    type Field = T::Field;

    fn read(value: &Value<'_>, field: &mut T::Field) {
        if !value.is_null() {
            T::read(value, field);
        }
    }
}

/// `null` is none.
impl<T: ValueType> ValueType for Option<T> {
    type Field = Option<T::Field>;

    fn parse(value: &Value<'_>) -> Option<Self::Field> {
        if value.is_null() { Some(None) } else { T::parse(value).map(Some) }
    }
}

/// A list replaces the one before it as a whole.
impl<T: ValueType> ValueType for Vec<T> {
    type Field = Vec<T::Field>;

    fn parse(value: &Value<'_>) -> Option<Self::Field> {
        Some(value.list()?.iter().filter_map(T::parse).collect())
    }
}

impl ValueType for bool {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.flag()
    }
}

impl ValueType for String {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.text().map(str::to_owned)
    }
}

impl ValueType for SecretText {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.text().map(Self::from)
    }
}

impl ValueType for Duration {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        let duration = value.as_text().and_then(quantity::duration);
        if duration.is_none() {
            let message = format!("`{}` must be a duration", value.name());
            value.error("quantity", message, "write it with its unit: `500ms`, `60s`, `10m`, `1h`");
        }
        duration
    }
}

impl ValueType for Size {
    type Field = usize;

    fn parse(value: &Value<'_>) -> Option<usize> {
        let size = value.as_text().and_then(quantity::size);
        if size.is_none() {
            let message = format!("`{}` must be a size", value.name());
            value.error("quantity", message, "write it with its unit: `512B`, `64KiB`, `16MiB`, `1GiB`");
        }
        size
    }
}

impl ValueType for NonZeroUsize {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        let number = value.integer()?;
        let count = usize::try_from(number).ok().filter(|_| number <= LARGEST_COUNT).and_then(Self::new);
        if count.is_none() {
            let message = format!("`{}` is out of range", value.name());
            value.error("count", message, format!("use 1 to {LARGEST_COUNT}"));
        }
        count
    }
}

impl ValueType for Fraction {
    type Field = f64;

    fn parse(value: &Value<'_>) -> Option<f64> {
        let fraction = value.number()?;
        if (0.0..=1.0).contains(&fraction) {
            return Some(fraction);
        }
        let message = format!("`{}` is out of range", value.name());
        value.error("share", message, "use 0.0 for none to 1.0 for all");
        None
    }
}

impl ValueType for Temperature {
    type Field = f64;

    fn parse(value: &Value<'_>) -> Option<f64> {
        let temperature = value.number()?;
        if (0.0..=2.0).contains(&temperature) {
            return Some(temperature);
        }
        let message = format!("`{}` is out of range", value.name());
        value.error("temperature", message, "use 0 to 2, or leave it out");
        None
    }
}

impl ValueType for PathBuf {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        let text = value.text()?;
        if text.starts_with('/') && !text.contains('\0') {
            return Some(Self::from(text));
        }
        let message = format!("`{}` must be an absolute path", value.name());
        value.error("path", message, "begin it with `/`");
        None
    }
}

impl ValueType for SocketPath {
    type Field = PathBuf;

    fn parse(value: &Value<'_>) -> Option<PathBuf> {
        let path = PathBuf::parse(value)?;
        if path.as_os_str().len() <= LONGEST_SOCKET {
            return Some(path);
        }
        let message =
            format!("`{}` is longer than the {LONGEST_SOCKET} bytes that a socket may have", value.name());
        value.error("path", message, "put it into a directory with a shorter path");
        None
    }
}

impl ValueType for SocketAddr {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        let address = value.text()?.parse().ok();
        if address.is_none() {
            let message = format!("`{}` must be an address with its port", value.name());
            let help = "write it such as `127.0.0.1:8787` or `\"[::1]:8787\"`, not by name";
            value.error("address", message, help);
        }
        address
    }
}

impl ValueType for HttpTarget {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        let target = value.text()?.parse();
        if let Err(error) = &target {
            let message = format!("an item of `{}` {error}", value.name());
            value.error("http-target", message, "write it such as `localhost:8377` or `10.1.0.0/16`");
        }
        target.ok()
    }
}

impl ValueType for ModelApi {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|api| (api.as_str(), api)))
    }
}

impl ValueType for BrokenFilePolicy {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|policy| (policy.as_str(), policy)))
    }
}

impl ValueType for TrustPolicy {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|policy| (policy.as_str(), policy)))
    }
}

impl ValueType for JsonOutput {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|way| (way.as_str(), way)))
    }
}

impl ValueType for FilesystemAccess {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|access| (access.as_str(), access)))
    }
}

impl ValueType for NetworkAccess {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|access| (access.as_str(), access)))
    }
}

impl ValueType for VariablePattern {
    type Field = String;

    fn parse(value: &Value<'_>) -> Option<String> {
        let text = value.text()?;
        if is_variable(text.strip_suffix('*').unwrap_or(text)) {
            return Some(text.to_owned());
        }
        let message = format!("`{}` has no names of variables here", value.name());
        value.error("variable", message, "write `NAME` or `PREFIX_*`");
        None
    }
}

impl ValueType for HookNameText {
    type Field = String;

    fn parse(value: &Value<'_>) -> Option<String> {
        let text = value.text()?;
        let name = HookName::new(text);
        if let Err(error) = &name {
            let message = format!("`{}` has no names of hooks here: the name {error}", value.name());
            value.error("name", message, "write names as `hookyard list` shows them");
        }
        name.ok().map(|name| name.to_string())
    }
}

impl ValueType for VariablePrefix {
    type Field = String;

    fn parse(value: &Value<'_>) -> Option<String> {
        let text = value.text()?;
        if is_variable(text) {
            return Some(text.to_owned());
        }
        let message = format!("`{}` must be the beginning of a variable's name", value.name());
        value.error("variable", message, "write it such as `HOOKYARD_SECRET_`, or `null` for none");
        None
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
