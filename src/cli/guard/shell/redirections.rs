//! Where commands of a shell print, and what they read.

use rable::{Node, NodeKind};

use super::words::word_text;
use crate::cli::guard::text::Unclear;

/// Where a redirection leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Redirection {
    OutToErrors,
    OutAway,
    ErrorsAway,
    AllAway,
    /// The input is this word.
    Text(String),
    Document {
        text: String,
        is_plain: bool,
    },
}

/// What a redirection does.
pub(super) fn redirection(node: &Node) -> Result<Redirection, Unclear> {
    match &node.kind {
        NodeKind::Redirect { op, target, fd, varfd: None } => {
            let target = word_text(target).unwrap_or_default();
            Ok(match (op.as_str(), *fd, target) {
                (">&", -1 | 1, "2") | (">", -1 | 1, "/dev/stderr") => Redirection::OutToErrors,
                (">", -1 | 1, "/dev/null") => Redirection::OutAway,
                (">", 2, "/dev/null") => Redirection::ErrorsAway,
                ("&>" | ">&", -1, "/dev/null") => Redirection::AllAway,
                ("<<<", -1 | 0, word) => Redirection::Text(word.to_owned()),
                _ => return Unclear::new(format!("the redirection `{op}{target}`")),
            })
        }
        NodeKind::HereDoc { content, strip_tabs: false, quoted, fd: -1 | 0, complete: true, .. } => {
            Ok(Redirection::Document { text: content.clone(), is_plain: *quoted })
        }
        _ => Unclear::new("a redirection that is not understood"),
    }
}

/// Where a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PrintTarget {
    Out,
    Errors,
    Nowhere,
}

/// Where a command with these redirections prints.
pub(super) fn target_of(redirects: &[Node]) -> Result<PrintTarget, Unclear> {
    let mut target = PrintTarget::Out;
    for redirect in redirects {
        target = match (redirection(redirect)?, target) {
            (Redirection::OutToErrors, PrintTarget::Out) => PrintTarget::Errors,
            (Redirection::OutAway | Redirection::AllAway, PrintTarget::Out) => PrintTarget::Nowhere,
            (Redirection::ErrorsAway | Redirection::Document { .. } | Redirection::Text(_), target) => target,
            // `2>&1` after `>/dev/null` is refused where it is read.
            _ => return Unclear::new("several redirections"),
        };
    }
    Ok(target)
}
