//! What is signed about a bundle: a few lines of text that name it and the digests of its manifest and its archive. It is
//! checked before a byte of the archive is looked at, and it is what an edge asks for at each poll.

use std::fmt::Write as _;

#[cfg(any(feature = "cli", test))]
use super::keys::BundleSigningKey;
use super::{
    archive::MAX_ARCHIVE,
    hex,
    keys::{BundleVerifyingKey, SIGNATURE_BYTES},
    manifest::{BundleManifest, BundleName, is_sha256},
    rejection::{BundleRejection, RejectionKind},
    time::BundleTime,
};
use crate::model::hex_digits;

/// The largest statement with its signatures, in bytes.
pub(crate) const MAX_STATEMENT: usize = 4096;

/// The most signatures of a statement.
const MAX_SIGNATURES: usize = 8;

/// The first line: no other text that somebody signs begins so.
const HEADER: &str = "hookyard bundle 1";

/// What stands for no end of the validity.
const NEVER: &str = "never";

/// What is signed about a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BundleStatement {
    pub(crate) name: BundleName,
    pub(crate) version: u64,
    pub(crate) not_before: BundleTime,
    pub(crate) expires: Option<BundleTime>,
    /// The SHA-256 of the manifest.
    pub(crate) manifest: String,
    /// The SHA-256 of the archive.
    pub(crate) archive: String,
    /// The bytes of the archive.
    pub(crate) size: usize,
}

impl BundleStatement {
    /// The statement about an archive with this manifest.
    #[cfg(any(feature = "cli", test))]
    pub(crate) fn about(manifest: &BundleManifest, archive: &[u8]) -> Self {
        Self {
            name: manifest.name.clone(),
            version: manifest.version,
            not_before: manifest.not_before,
            expires: manifest.expires,
            manifest: super::manifest::sha256_hex(&manifest.write()),
            archive: super::manifest::sha256_hex(archive),
            size: archive.len(),
        }
    }

    /// The name of the archive beside the published statement. No server takes its ending for an encoding.
    pub(crate) fn archive_name(&self) -> String {
        format!("{}.archive", self.archive)
    }

    /// Whether a manifest says the same about itself.
    pub(super) fn agrees_with(&self, manifest: &BundleManifest) -> bool {
        self.name == manifest.name
            && self.version == manifest.version
            && self.not_before == manifest.not_before
            && self.expires == manifest.expires
    }

    /// The lines that are signed.
    fn text(&self) -> String {
        let expires = self.expires.map_or_else(|| NEVER.to_owned(), |moment| moment.to_string());
        format!(
            "{HEADER}\nname {}\nversion {}\nnot_before {}\nexpires {expires}\nmanifest {}\narchive {} {}\n",
            self.name, self.version, self.not_before, self.manifest, self.archive, self.size
        )
    }

    fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
        let header = value("hookyard")?;
        let name = BundleName::new(value("name")?)?;
        let version = value("version")?.parse().ok()?;
        let not_before = BundleTime::parse(value("not_before")?)?;
        let expires = match value("expires")? {
            NEVER => None,
            text => Some(BundleTime::parse(text)?),
        };
        let manifest = value("manifest")?.to_owned();
        let (archive, size) = value("archive")?.split_once(' ')?;
        let size = size.parse().ok()?;
        let found = Self { name, version, not_before, expires, manifest, archive: archive.to_owned(), size };
        // One form only: no sign, no leading zero, no blank more than there is.
        let is_sound = HEADER.ends_with(header) && is_sha256(&found.manifest) && is_sha256(&found.archive);
        (is_sound && found.size <= MAX_ARCHIVE && found.text() == text).then_some(found)
    }
}

/// A key, and what it has signed with.
type KeySignature = (BundleVerifyingKey, [u8; SIGNATURE_BYTES]);

/// A statement with its signatures: the file beside an archive, and what a server has at the address of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignedStatement {
    pub(crate) statement: BundleStatement,
    /// Each key stands once.
    signatures: Vec<KeySignature>,
}

impl SignedStatement {
    /// A statement that nobody has signed yet.
    #[cfg(any(feature = "cli", test))]
    pub(crate) fn unsigned(statement: BundleStatement) -> Self {
        Self { statement, signatures: Vec::new() }
    }

    /// Adds the signature of a key, or replaces it.
    ///
    /// Returns an error if it has as many as there may be.
    #[cfg(any(feature = "cli", test))]
    pub(crate) fn sign(&mut self, key: &BundleSigningKey) -> Result<(), BundleRejection> {
        let signature = key.sign(self.statement.text().as_bytes());
        self.signatures.retain(|(known, _)| *known != key.public());
        if self.signatures.len() >= MAX_SIGNATURES {
            let message = format!("a bundle has at most {MAX_SIGNATURES} signatures");
            return Err(BundleRejection::new(RejectionKind::Statement, message));
        }
        self.signatures.push((key.public(), signature));
        self.signatures.sort();
        Ok(())
    }

    /// The keys that are said to have signed it.
    #[cfg(any(feature = "cli", test))]
    pub(crate) fn keys(&self) -> impl Iterator<Item = &BundleVerifyingKey> {
        self.signatures.iter().map(|(key, _)| key)
    }

    /// The keys that have signed it, whoever has them.
    pub(crate) fn signers(&self) -> impl Iterator<Item = &BundleVerifyingKey> {
        let message = self.statement.text();
        let good = self.signatures.iter();
        let good = good.filter(move |(key, signature)| key.has_signed(message.as_bytes(), signature));
        good.map(|(key, _)| key)
    }

    /// The same statement with the good signatures of both: those of these keys first, then those of the other one, as far as
    /// there is room. Whoever adds signatures of their own on the way pushes out none of these keys.
    pub(crate) fn merged(&self, other: &Self, keys: &[BundleVerifyingKey]) -> Self {
        let message = self.statement.text();
        let mut good: Vec<KeySignature> = other.signatures.iter().chain(&self.signatures).copied().collect();
        good.retain(|(key, signature)| key.has_signed(message.as_bytes(), signature));
        // Stable: of each kind, those of the other one stay first.
        good.sort_by_key(|(key, _)| !keys.contains(key));
        let mut signatures: Vec<KeySignature> = Vec::new();
        for (key, signature) in good {
            if signatures.len() < MAX_SIGNATURES && signatures.iter().all(|(known, _)| *known != key) {
                signatures.push((key, signature));
            }
        }
        signatures.sort();
        Self { statement: self.statement.clone(), signatures }
    }

    #[cfg(test)]
    pub(super) fn signatures_left(&self) -> usize {
        self.signatures.len()
    }

    /// Its one form.
    pub(crate) fn write(&self) -> String {
        let mut text = self.statement.text();
        for (key, signature) in &self.signatures {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "signature {key} {}", hex_digits(signature));
        }
        text
    }

    /// Reads the one form in which it is written. Says nothing about the signatures.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, BundleRejection> {
        let wrong =
            |why: &str| BundleRejection::new(RejectionKind::Statement, format!("the signed statement {why}"));
        if bytes.len() > MAX_STATEMENT {
            return Err(wrong("is too large"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("is no text"))?;
        let (signed, rest) = match text.find("signature ") {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let statement = BundleStatement::read(signed)
            .ok_or_else(|| wrong("is not as `hookyard bundle sign` writes it"))?;
        let signatures = rest.lines().map(signature_of).collect::<Option<Vec<_>>>();
        let signatures = signatures.ok_or_else(|| wrong("has a damaged signature"))?;
        let found = Self { statement, signatures };
        let is_ordered = found.signatures.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !is_ordered || found.signatures.len() > MAX_SIGNATURES || found.write() != text {
            return Err(wrong("is not as `hookyard bundle sign` writes it"));
        }
        Ok(found)
    }

    /// The key among these that has signed it.
    ///
    /// Returns an error if there is none.
    pub(crate) fn verify(&self, keys: &[BundleVerifyingKey]) -> Result<BundleVerifyingKey, BundleRejection> {
        let message = self.statement.text();
        let signed = self
            .signatures
            .iter()
            .find(|(key, signature)| keys.contains(key) && key.has_signed(message.as_bytes(), signature));
        signed.map(|(key, _)| *key).ok_or_else(|| {
            let is_known = self.signatures.iter().any(|(key, _)| keys.contains(key));
            let message = match (self.signatures.is_empty(), is_known) {
                (true, _) => "nobody has signed it",
                (false, true) => "its signature is wrong",
                (false, false) => "none of the keys in `bundle.keys` has signed it",
            };
            BundleRejection::new(RejectionKind::Signature, message)
        })
    }
}

fn signature_of(line: &str) -> Option<KeySignature> {
    let (key, signature) = line.strip_prefix("signature ")?.split_once(' ')?;
    Some((BundleVerifyingKey::parse(key)?, hex::bytes(signature)?))
}
