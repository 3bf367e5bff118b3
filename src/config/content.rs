//! The content of hooks: a hash over each definition and the scripts that its command names. By it a reload sees that a
//! script was edited, and an audit says what ran.

use std::{
    collections::BTreeMap,
    fs::Metadata,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use sha2::{Digest, Sha256};

use super::{
    digests::digest_of,
    files::{SymlinkPolicy, open_regular},
};
use crate::model::{CommandHandler, ContentHash, Handler, Hook, Matcher, Timestamp, hex_digits};

/// How many bytes of a hash are kept.
const BYTES: usize = 16;

/// How many digits of a hash people are shown.
const SHOWN_DIGITS: usize = 12;

/// The content of a file with hooks, and since when it has been that.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RulesVersion {
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: Arc<str>,
    /// When it was loaded first.
    pub since: SystemTime,
}

impl RulesVersion {
    /// The version of a content with this hash that is loaded now. A record has whole seconds.
    pub(super) fn now(sha256: String) -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self { sha256: sha256.into(), since: UNIX_EPOCH + Duration::from_secs(seconds) }
    }

    /// The beginning of the hash, and the time, for people.
    pub fn shown(&self) -> String {
        let digits = self.sha256.get(..SHOWN_DIGITS).unwrap_or(&self.sha256);
        format!("{digits}, in force since {}", Timestamp::of(self.since))
    }
}

/// Gives each hook of a file its hash. Returns the scripts and the files of rules, so that they can be watched.
pub(super) fn hash_hooks(hooks: &mut [Hook], root: &Path) -> Vec<PathBuf> {
    let mut scripts = BTreeMap::new();
    for hook in hooks.iter_mut().filter(|hook| hook.source.file.is_some()) {
        let mut hasher = Sha256::new();
        hasher.update(definition(hook, root));
        if let Handler::Command(command) = &hook.handler {
            for (script, metadata) in scripts_of(command) {
                let name = script.strip_prefix(root).unwrap_or(&script);
                hasher.update(name.to_string_lossy().as_bytes());
                hasher.update([0]);
                // Many hooks name the same shell.
                let hash = scripts.entry(script).or_insert_with_key(|script| script_hash(script, &metadata));
                hasher.update(hash.as_bytes());
            }
        }
        hook.source.content = Some(Arc::new(ContentHash::new(hex_digits(&hasher.finalize()[..BYTES]))));
    }
    let facts = hooks.iter().filter_map(|hook| match &hook.handler {
        Handler::Rule(rule) | Handler::Rego(rule) => {
            Some(rule.files.iter().map(|file| root.join(&*file.path)))
        }
        _ => None,
    });
    let facts: Vec<PathBuf> = facts.flatten().collect();
    scripts.into_keys().chain(facts).filter(|file| file.starts_with(root)).collect()
}

/// A hash over hooks with a hash of their own, in their order.
pub(crate) fn hash_of_all<'h>(hooks: impl Iterator<Item = &'h Hook>) -> String {
    let mut hasher = Sha256::new();
    for hook in hooks {
        hasher.update(hook.name.as_str());
        hasher.update([0]);
        hasher.update(hook.source.content.as_ref().map_or("", |content| content.as_str()));
        hasher.update([0]);
    }
    hex_digits(&hasher.finalize()[..BYTES])
}

/// Everything about a hook but where it stands, without secrets. The directory of the workspace is left out, so that the
/// same files have the same hash elsewhere.
fn definition(hook: &Hook, root: &Path) -> String {
    let pattern = hook.matcher.as_ref().map(Matcher::pattern);
    let policies = (hook.on_error, hook.on_timeout, &hook.execution, hook.timeout, hook.max_concurrency);
    let what = (&hook.handler, &hook.capabilities, hook.priority, hook.enabled);
    let all = (hook.name.as_str(), hook.dialect.name(), &hook.events, pattern, what, policies);
    format!("{all:?}").replace(&root.display().to_string(), "$ROOT")
}

fn scripts_of(command: &CommandHandler) -> Vec<(PathBuf, Metadata)> {
    let paths = command.line.scripts().into_iter().map(|script| command.cwd.join(script));
    let found = paths.filter_map(|path| path.metadata().ok().map(|metadata| (path, metadata)));
    found.filter(|(_, metadata)| metadata.is_file()).collect()
}

/// The hash of a script, or its size if it is too large or cannot be read.
fn script_hash(script: &Path, metadata: &Metadata) -> Arc<str> {
    let digest = digest_of(metadata, || open_regular(script, SymlinkPolicy::Followed));
    digest.map_or_else(|_| metadata.len().to_string().into(), |digest| digest.sha256)
}
