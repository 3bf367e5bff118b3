//! The settings of the signed bundle that this machine takes hooks from.

use std::time::Duration;

use super::{declare::settings, keys::ValueType, urls::url, value_types::NullIsDefault};
use crate::{dialect::Value, model::Address};

settings! {
    /// Signed bundle of hooks that nothing below it switches off. Only the settings file and `--set` can say so, not an
    /// environment variable.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section BundleSettings {
        /// Where the bundle is published: an `https://` URL, or `http://` to this machine; `null` means that it comes with
        /// `hookyard bundle install`.
        #[example = "https://hooks.example.com/guards.bundle"]
        url: Option<Address> as Option<BundleUrl> = None,

        /// Public keys, as `hookyard bundle keygen` prints them; a bundle must have the signature of one of them. With a key,
        /// events are blocked until there is a bundle that can be used.
        #[example = "[\"ed25519:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"]"]
        keys: Vec<String> as Vec<BundleKeyText> = Vec::new(),

        /// Name of the bundle that this machine takes, where a key signs several; `null` means that the first one decides.
        #[example = "acme/guards"]
        name: Option<String> as Option<BundleNameText> = None,

        /// How often the daemon asks for a newer bundle; each pause is up to a fifth shorter or longer. At least `100ms`.
        poll: Duration = Duration::from_secs(30),

        /// Longest time without an answer of the server after which the bundle is stale; `null` means that only its own
        /// `expires` counts.
        #[example = "72h"]
        max_age: Option<Duration> = None,

        /// What happens once the bundle is stale: `keep` leaves its hooks in force, `ask` asks about every event that can be
        /// stopped, `deny` blocks it. A bundle that cannot be used at all blocks with `keep`, too.
        on_stale: StalePolicy as NullIsDefault<StalePolicy> = StalePolicy::Keep,
    }
}

/// What happens once a bundle is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum StalePolicy {
    /// Its hooks stay in force.
    #[default]
    Keep,
    /// Its hooks stay in force, and a person is asked about every event that can be stopped.
    Ask,
    /// Every event that can be stopped is blocked.
    Deny,
}

impl StalePolicy {
    pub(super) const ALL: [Self; 3] = [Self::Keep, Self::Ask, Self::Deny];

    /// The word for it in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The shortest pause between two polls.
pub(super) const SHORTEST_POLL: Duration = Duration::from_millis(100);

/// The longest name of a bundle, in bytes.
const LONGEST_NAME: usize = 64;

/// An address of a published bundle.
pub(super) struct BundleUrl;

/// A public key.
pub(super) struct BundleKeyText;

/// The name of a bundle.
pub(super) struct BundleNameText;

impl BundleSettings {
    /// Whether a bundle belongs to this machine, whether or not there is one yet.
    pub(crate) fn is_configured(&self) -> bool {
        self.url.is_some() || !self.keys.is_empty()
    }
}

impl ValueType for BundleUrl {
    type Field = Address;

    fn parse(value: &Value<'_>) -> Option<Address> {
        // The signature holds all the same, and a bundle that is held back is seen by its age.
        let why_not = |address: &Address| {
            let why = "a bundle needs an `https://` URL, or an `http://` one to this machine";
            (!address.is_safe_on_the_way()).then_some(why)
        };
        url(value, why_not, "write it as `https://server/guards.bundle`", None)
    }
}

impl ValueType for BundleKeyText {
    type Field = String;

    fn parse(value: &Value<'_>) -> Option<String> {
        let text = value.text()?;
        let digits = text.strip_prefix("ed25519:").unwrap_or_default();
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if digits.len() == 64 && digits.bytes().all(is_digit) {
            return Some(text.to_owned());
        }
        let message = format!("an item of `{}` is no public key", value.name());
        let help = "write it as `hookyard bundle keygen` prints it: `ed25519:` and 64 hexadecimal digits";
        value.error("bundle-key", message, help);
        None
    }
}

impl ValueType for BundleNameText {
    type Field = String;

    fn parse(value: &Value<'_>) -> Option<String> {
        let text = value.text()?;
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        let is_part = |part: &str| {
            part.starts_with(|first: char| first.is_ascii_alphanumeric()) && part.bytes().all(is_plain)
        };
        if text.len() <= LONGEST_NAME && text.split('/').count() <= 2 && text.split('/').all(is_part) {
            return Some(text.to_owned());
        }
        let message = format!("`{}` is no name of a bundle", value.name());
        let help = "write it as `hookyard bundle build --name` takes it: `acme/guards`, say";
        value.error("bundle", message, help);
        None
    }
}

impl ValueType for StalePolicy {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|policy| (policy.as_str(), policy)))
    }
}

/// Descriptions of the types. Compiled for tests only.
#[cfg(test)]
mod described {
    use serde_json::{Value as Json, json};

    use super::{
        super::described::{DescribedValue, ValueForm},
        BundleKeyText, BundleNameText,
    };

    impl DescribedValue for BundleNameText {
        fn form() -> ValueForm {
            ValueForm::text("name of a bundle", "^(?=.{1,64}$)[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)?$")
        }

        fn show(field: &String) -> Json {
            json!(field)
        }
    }

    impl DescribedValue for BundleKeyText {
        fn form() -> ValueForm {
            ValueForm::text("public key", "^ed25519:[0-9a-f]{64}$")
        }

        fn show(field: &String) -> Json {
            json!(field)
        }
    }
}
