//! Finds what looks like a secret in a text: tokens of well-known shapes, and words of high entropy that stand where
//! secrets do.

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundSecret {
    /// What it is, such as `github-token`.
    pub(super) kind: &'static str,
    /// Where it is, in bytes.
    pub(super) range: std::ops::Range<usize>,
    /// Its first characters, and dots for the others.
    pub(super) shown: String,
}

/// The most secrets of one text.
const MOST_FOUND: usize = 1_000;

/// The bits per character from which a word after `password=` counts as a secret.
const SECRET_ENTROPY: f64 = 3.0;

/// Shapes of tokens. The sources are the issuers' own documents, as far as they publish a shape.
const SHAPES: [(&str, &str); 27] = [
    ("private-key", r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\bPuTTY-User-Key-File-[0-9]:"),
    ("aws-access-key", r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"),
    ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_[A-Za-z0-9_]{22,255})\b"),
    ("gitlab-token", r"\bgl(?:pat|ptt|dt|rt|cbt|ft|soat)-[A-Za-z0-9_-]{20,}"),
    ("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{24,}"),
    ("openai-key", r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{32,}"),
    ("google-key", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("google-oauth", r"\bya29\.[A-Za-z0-9_-]{20,}"),
    ("slack-token", r"\b(?:xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{20,})"),
    ("slack-webhook", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_+-]{20,}"),
    ("stripe-key", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("pypi-token", r"\bpypi-AgE[A-Za-z0-9_-]{50,}"),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("hugging-face-token", r"\bhf_[A-Za-z0-9]{30,}\b"),
    ("sendgrid-key", r"\bSG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{40,}"),
    ("digitalocean-token", r"\bdo[opr]_v1_[a-f0-9]{64}\b"),
    ("shopify-token", r"\bshp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}\b"),
    ("vault-token", r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}"),
    ("docker-token", r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    ("age-key", r"\bAGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{50,}"),
    ("grafana-token", r"\bglsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}\b"),
    ("groq-key", r"\bgsk_[A-Za-z0-9]{40,}\b"),
    ("xai-key", r"\bxai-[A-Za-z0-9]{60,}\b"),
    ("linear-key", r"\blin_api_[A-Za-z0-9]{32,}\b"),
    ("azure-storage-key", r"\bAccountKey=(?P<secret>[A-Za-z0-9+/]{80,}={0,2})"),
    ("url-password", r"\b[a-z][a-z0-9+.-]*://[^\s/:@'\x22]+:(?P<secret>[^\s/@'\x22]{3,})@"),
];

/// A word that is given to a name for secrets.
const ASSIGNED: &str = r#"(?i)\b[a-z0-9_.-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)s?["']?\s*(?:=>|:=|=|:)\s*["']?(?P<secret>[A-Za-z0-9+/_=.~!@#%^&*-]{12,200})"#;

/// One expression for all shapes tells quickly that there is none.
struct Shapes {
    any: Regex,
    each: Vec<(&'static str, Regex)>,
    assigned: Regex,
}

static COMPILED: LazyLock<Option<Shapes>> = LazyLock::new(|| {
    let any = SHAPES.iter().map(|(_, shape)| format!("(?:{})", shape.replace("?P<secret>", "?:")));
    let any = any.collect::<Vec<_>>().join("|");
    let each = SHAPES.iter().map(|(kind, shape)| Some((*kind, compiled(shape)?)));
    Some(Shapes { any: compiled(&any)?, each: each.collect::<Option<_>>()?, assigned: compiled(ASSIGNED)? })
});

/// Shapes are our own, so that they need no bounds.
fn compiled(shape: &str) -> Option<Regex> {
    RegexBuilder::new(shape).build().ok()
}

/// The secrets of a text, in their order, without overlaps.
pub(super) fn find(text: &str) -> Vec<FoundSecret> {
    let Some(shapes) = COMPILED.as_ref() else { return Vec::new() };
    let mut found = Vec::new();
    if shapes.any.is_match(text) {
        for (kind, shape) in &shapes.each {
            collect(text, kind, shape, &mut found);
        }
    }
    let mut assigned = Vec::new();
    collect(text, "assigned-secret", &shapes.assigned, &mut assigned);
    found.extend(assigned.into_iter().filter(|secret| is_random(&text[secret.range.clone()])));
    found.sort_by_key(|secret| (secret.range.start, std::cmp::Reverse(secret.range.end)));
    let mut end = 0;
    found.retain(|secret| {
        let is_new = secret.range.start >= end;
        end = end.max(secret.range.end);
        is_new
    });
    found.truncate(MOST_FOUND);
    found
}

/// The text with a name for each of its secrets in their place.
pub(super) fn redact(text: &str) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut rest = 0;
    for secret in find(text) {
        redacted.push_str(&text[rest..secret.range.start]);
        redacted.push_str("[redacted ");
        redacted.push_str(secret.kind);
        redacted.push(']');
        rest = secret.range.end;
    }
    redacted.push_str(&text[rest..]);
    redacted
}

fn collect(text: &str, kind: &'static str, shape: &Regex, found: &mut Vec<FoundSecret>) {
    for captures in shape.captures_iter(text).take(MOST_FOUND) {
        let Some(secret) = captures.name("secret").or_else(|| captures.get(0)) else { continue };
        let shown = secret.as_str().chars().take(4).chain("…".chars()).collect();
        found.push(FoundSecret { kind, range: secret.range(), shown });
    }
}

/// Whether a word looks random: letters and digits in it, and many different ones.
fn is_random(word: &str) -> bool {
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    let has_letter = word.bytes().any(|byte| byte.is_ascii_alphabetic());
    has_digit && has_letter && entropy(word) >= SECRET_ENTROPY
}

/// Shannon's entropy of the bytes of a word, in bits per byte.
#[expect(clippy::cast_precision_loss, reason = "the length of a word")]
fn entropy(word: &str) -> f64 {
    let mut counts = [0_u32; 256];
    word.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let length = word.len() as f64;
    let counted = counts.iter().filter(|count| **count > 0);
    counted.map(|count| f64::from(*count) / length).map(|share| -share * share.log2()).sum()
}
