//! The manifest of a bundle: what it is, when it counts, and the digest of each file.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    hex,
    path::{BundlePath, DistinctPaths},
    rejection::{BundleRejection, RejectionKind},
    time::BundleTime,
    version::is_at_least,
};
use crate::model::hex_digits;

/// The version of the format.
const FORMAT: u32 = 1;

/// The largest manifest, in bytes.
pub(super) const MAX_MANIFEST: usize = 1 << 20;

/// The most files of a bundle.
pub(super) const MAX_FILES: usize = 4096;

/// The most required hooks of a bundle.
const MAX_REQUIRED: usize = 1024;

/// The longest name of a bundle, in bytes.
const LONGEST_NAME: usize = 64;

/// The SHA-256 of some bytes, in hexadecimal digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex_digits(&Sha256::digest(bytes))
}

/// Whether a text is a SHA-256 in its one form.
pub(super) fn is_sha256(text: &str) -> bool {
    hex::bytes::<32>(text).is_some()
}

/// The name of a bundle, such as `acme/guards`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BundleName(Box<str>);

impl BundleName {
    /// A name of lower-case letters, digits, `.`, `_` and `-`, in one or two parts with a `/` between them.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let is_plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-')
        };
        let is_part = |part: &str| {
            part.bytes().all(is_plain) && part.starts_with(|first: char| first.is_ascii_alphanumeric())
        };
        let is_name =
            text.len() <= LONGEST_NAME && text.split('/').count() <= 2 && text.split('/').all(is_part);
        is_name.then(|| Self(text.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BundleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What a bundle says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BundleManifest {
    pub(crate) name: BundleName,
    pub(crate) version: u64,
    pub(crate) not_before: BundleTime,
    /// None if it never expires.
    pub(crate) expires: Option<BundleTime>,
    /// The oldest hookyard that it is for.
    pub(crate) min_hookyard: String,
    /// The names of the hooks that must be in force.
    pub(crate) required: Vec<String>,
    /// The SHA-256 of each file.
    pub(crate) files: BTreeMap<BundlePath, String>,
}

/// A manifest as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenManifest {
    v: u32,
    name: String,
    version: u64,
    not_before: String,
    expires: Option<String>,
    min_hookyard: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    required: Vec<String>,
    files: BTreeMap<String, String>,
}

impl BundleManifest {
    /// Its one form.
    pub(crate) fn write(&self) -> Vec<u8> {
        let files = self.files.iter().map(|(path, digest)| (path.to_string(), digest.clone()));
        let written = WrittenManifest {
            v: FORMAT,
            name: self.name.to_string(),
            version: self.version,
            not_before: self.not_before.to_string(),
            expires: self.expires.map(|moment| moment.to_string()),
            min_hookyard: self.min_hookyard.clone(),
            required: self.required.clone(),
            files: files.collect(),
        };
        let mut bytes = serde_json::to_vec_pretty(&written).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Reads the one form in which a manifest is written: no key twice, none that is not known, nothing after it.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, BundleRejection> {
        let wrong = |why: &str| BundleRejection::new(RejectionKind::Manifest, format!("its manifest {why}"));
        if bytes.len() > MAX_MANIFEST {
            return Err(wrong("is too large"));
        }
        let written: WrittenManifest = serde_json::from_slice(bytes)
            .map_err(|error| wrong(&format!("is none that this hookyard reads: {error}")))?;
        if written.v != FORMAT {
            return Err(wrong("is of another format; update hookyard"));
        }
        let manifest = Self {
            name: BundleName::new(&written.name).ok_or_else(|| wrong("has no name of a bundle"))?,
            version: written.version,
            not_before: BundleTime::parse(&written.not_before)
                .ok_or_else(|| wrong("has a wrong `not_before`"))?,
            expires: match &written.expires {
                None => None,
                Some(text) => Some(BundleTime::parse(text).ok_or_else(|| wrong("has a wrong `expires`"))?),
            },
            min_hookyard: written.min_hookyard,
            required: written.required,
            files: read_files(written.files)?,
        };
        if is_at_least("0", &manifest.min_hookyard).is_none() {
            return Err(wrong("has a wrong `min_hookyard`"));
        }
        if manifest.required.len() > MAX_REQUIRED {
            return Err(wrong("requires too many hooks"));
        }
        if manifest.write() != bytes {
            return Err(wrong("is not written as hookyard writes it"));
        }
        Ok(manifest)
    }

    /// Returns an error if this hookyard is too old for it.
    pub(crate) fn check_hookyard(&self) -> Result<(), BundleRejection> {
        let own = env!("CARGO_PKG_VERSION");
        if is_at_least(own, &self.min_hookyard) == Some(true) {
            return Ok(());
        }
        let message = format!("it needs hookyard {} or later, and this is {own}", self.min_hookyard);
        Err(BundleRejection::new(RejectionKind::MinHookyard, message))
    }
}

fn read_files(files: BTreeMap<String, String>) -> Result<BTreeMap<BundlePath, String>, BundleRejection> {
    let wrong = |message: String| BundleRejection::new(RejectionKind::Manifest, message);
    if files.is_empty() || files.len() > MAX_FILES {
        return Err(wrong(format!("a bundle has 1 to {MAX_FILES} files")));
    }
    let mut distinct = DistinctPaths::default();
    let mut found = BTreeMap::new();
    for (path, digest) in files {
        let shown = path.escape_debug().to_string();
        let path =
            BundlePath::new(&path).map_err(|why| wrong(format!("`{shown}` may not be in it: {why}")))?;
        distinct.add(&path).map_err(|other| wrong(format!("`{shown}` and `{other}` collide")))?;
        if !is_sha256(&digest) {
            return Err(wrong(format!("`{shown}` has no SHA-256")));
        }
        found.insert(path, digest);
    }
    Ok(found)
}
