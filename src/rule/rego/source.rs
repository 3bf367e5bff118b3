//! The texts of policies.

use std::sync::Arc;

/// The package of the rules that are evaluated, which ask those of the policies.
pub(super) const ENTRY: &str = "__hookyard";

/// The text of a policy.
#[derive(Debug, Clone)]
pub(crate) struct PolicySource {
    /// What messages call it: its path below the workspace.
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
}

/// How deeply brackets and braces nest in a policy, and the line where they do so first.
pub(super) fn most_nested(text: &str) -> (usize, usize) {
    let mut deepest = (0, 1);
    let mut depth: usize = 0;
    let mut line = 1;
    let mut quote = None;
    let mut is_escaped = false;
    for c in text.chars() {
        line += usize::from(c == '\n');
        match (quote, c) {
            // A string ends with its line, a raw one does not.
            (Some('"' | '#'), '\n') => quote = None,
            (Some('"'), '\\') if !is_escaped => {
                is_escaped = true;
                continue;
            }
            (Some(begun), c) if begun == c && begun != '#' && !is_escaped => quote = None,
            (None, '"' | '`' | '#') => quote = Some(c),
            (None, '[' | '{') => {
                depth += 1;
                if depth > deepest.0 {
                    deepest = (depth, line);
                }
            }
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_escaped = false;
    }
    deepest
}
