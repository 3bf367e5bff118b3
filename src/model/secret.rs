//! Secrets, and texts that contain some. Both print as `***`.

use std::{fmt, sync::Arc};

/// What is shown in place of a secret.
pub(super) const HIDDEN: &str = "***";

/// A value that nobody may see: shown as `***`, whichever way it is printed.
///
/// ```
/// use hookyard::model::Secret;
///
/// let key = Secret::new("k3y");
/// assert_eq!(format!("{key} {key:?}"), "*** ***");
/// assert_eq!(key.expose(), "k3y");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Takes a value as a secret.
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// The value, to be sent and not to be shown.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// A text that may hold secrets, such as the value of a header. All of it is shown as `***`, because what a
/// person wrote out may be a key as well.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SecretText {
    text: String,
    secrets: Vec<Secret>,
    /// What was not looked up.
    references: Vec<SecretReference>,
}

/// What a text refers to: a variable of hookyard's environment, or a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SecretReference {
    /// The variable of this name.
    Variable(String),
    /// The secret of this name.
    Secret(String),
}

impl SecretText {
    /// A text that is one secret.
    pub fn secret(secret: Secret) -> Self {
        Self { text: secret.expose().to_owned(), secrets: vec![secret], references: Vec::new() }
    }

    /// A text that is not looked up before somebody has agreed to it.
    pub(crate) fn deferred(reference: SecretReference) -> Self {
        Self { references: vec![reference], ..Self::default() }
    }

    /// Adds another text, with its secrets.
    pub fn push(&mut self, other: impl Into<Self>) {
        let other = other.into();
        self.text.push_str(&other.text);
        self.secrets.extend(other.secrets);
        self.references.extend(other.references);
    }

    /// The text, to be sent and not to be shown.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The secrets in it.
    pub fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// What it refers to and lacks.
    pub(crate) fn references(&self) -> &[SecretReference] {
        &self.references
    }
}

impl From<&str> for SecretText {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

macro_rules! hidden {
    ($($name:ident),+) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(HIDDEN)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(HIDDEN)
            }
        }
    )+};
}

hidden!(Secret, SecretText);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_guarded_text_is_printed() {
        let mut header = SecretText::from("Bearer ");
        header.push(SecretText::secret(Secret::new("k3y-0001")));
        let headers = vec![("Authorization".to_owned(), header.clone())];
        assert_eq!(format!("{headers:?} {header}"), r#"[("Authorization", ***)] ***"#);
        assert_eq!(header.expose(), "Bearer k3y-0001");
        assert_eq!(header.secrets(), [Secret::new("k3y-0001")]);
    }
}
