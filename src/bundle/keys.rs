//! The keys of bundles: ed25519, written as hexadecimal digits.

use std::fmt;

use ring::signature::{ED25519, UnparsedPublicKey};
#[cfg(any(feature = "cli", test))]
use ring::{
    rand::{SecureRandom, SystemRandom},
    signature::{Ed25519KeyPair, KeyPair},
};

use super::hex;
use crate::model::hex_digits;

/// What a public key begins with.
const PUBLIC: &str = "ed25519:";

/// What a private key begins with.
#[cfg(any(feature = "cli", test))]
const PRIVATE: &str = "ed25519-private:";

/// The bytes of a signature.
pub(super) const SIGNATURE_BYTES: usize = 64;

/// A public key, written as `ed25519:` and 64 digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BundleVerifyingKey([u8; 32]);

impl BundleVerifyingKey {
    /// The key of its one form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        hex::bytes(text.strip_prefix(PUBLIC)?).map(Self)
    }

    /// Whether it has made a signature of a message.
    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).is_ok()
    }
}

impl fmt::Display for BundleVerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC}{}", hex_digits(&self.0))
    }
}

/// A private key. It is never printed.
#[cfg(any(feature = "cli", test))]
pub(crate) struct BundleSigningKey {
    seed: [u8; 32],
    pair: Ed25519KeyPair,
}

#[cfg(any(feature = "cli", test))]
impl BundleSigningKey {
    /// A new key; none if the system has no randomness.
    pub(crate) fn generate() -> Option<Self> {
        let mut seed = [0; 32];
        SystemRandom::new().fill(&mut seed).ok()?;
        Self::from_seed(seed)
    }

    pub(super) fn from_seed(seed: [u8; 32]) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).ok()?;
        Some(Self { seed, pair })
    }

    /// The key of a file: one line.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let line = text.strip_suffix('\n').unwrap_or(text);
        Self::from_seed(hex::bytes(line.strip_prefix(PRIVATE)?)?)
    }

    /// The content of its file.
    pub(crate) fn secret_line(&self) -> String {
        format!("{PRIVATE}{}\n", hex_digits(&self.seed))
    }

    pub(crate) fn public(&self) -> BundleVerifyingKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.pair.public_key().as_ref());
        BundleVerifyingKey(bytes)
    }

    pub(super) fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let mut bytes = [0; SIGNATURE_BYTES];
        bytes.copy_from_slice(self.pair.sign(message).as_ref());
        bytes
    }
}

#[cfg(any(feature = "cli", test))]
impl fmt::Debug for BundleSigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BundleSigningKey({})", self.public())
    }
}
