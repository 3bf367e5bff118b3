//! Whose bundles this machine takes: the keys of the settings, and the name if they have one.

use super::super::Settings;
use crate::bundle::{BundleRejection, BundleStatement, BundleVerifyingKey, RejectionKind, SignedStatement};

/// Whose bundles are taken.
#[derive(Debug, Clone)]
pub(crate) struct BundleTrust {
    pub(super) keys: Vec<BundleVerifyingKey>,
    /// The one name that is taken.
    pub(super) name: Option<String>,
}

impl BundleTrust {
    /// What the settings say. A key that is damaged cannot be there: the settings have an error then.
    pub(crate) fn of(settings: &Settings) -> Self {
        let keys = settings.bundle.keys.iter().filter_map(|key| BundleVerifyingKey::parse(key)).collect();
        Self { keys, name: settings.bundle.name.clone() }
    }

    /// The same with other keys.
    #[cfg(feature = "cli")]
    pub(crate) fn with_keys(self, keys: &[BundleVerifyingKey]) -> Self {
        Self { keys: keys.to_vec(), ..self }
    }

    #[cfg(feature = "cli")]
    pub(crate) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// The key that answers for a statement.
    ///
    /// Returns an error if none has signed it, or it is of another bundle.
    pub(crate) fn check(&self, signed: &SignedStatement) -> Result<BundleVerifyingKey, BundleRejection> {
        let key = signed.verify(&self.keys)?;
        self.check_name(&signed.statement)?;
        Ok(key)
    }

    fn check_name(&self, statement: &BundleStatement) -> Result<(), BundleRejection> {
        match &self.name {
            Some(wanted) if wanted != statement.name.as_str() => {
                let message = format!("it is `{}`, and `bundle.name` is `{wanted}`", statement.name);
                Err(BundleRejection::new(RejectionKind::Name, message))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|known| known.to_string() == key)
    }
}
