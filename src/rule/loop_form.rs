//! Macros as they are written: `list.exists(x, condition)` and its like.

use super::{
    expression::Quantifier,
    tree::{Tree, TreeNode},
};

/// A macro as it is written.
pub(super) struct LoopForm<'t> {
    pub(super) variable: &'t str,
    /// Of `filter` and `map`, none.
    pub(super) quantifier: Option<Quantifier>,
    pub(super) filter: Option<&'t Tree>,
    pub(super) body: &'t Tree,
}

impl<'t> LoopForm<'t> {
    /// The macro of a name with arguments, if it is one.
    pub(super) fn of(name: &str, arguments: &'t [Tree]) -> Option<Self> {
        let (first, rest) = arguments.split_first()?;
        let TreeNode::Name(variable) = &first.node else { return None };
        let quantifier = match name {
            "all" => Some(Quantifier::All),
            "exists" => Some(Quantifier::Exists),
            "exists_one" | "existsOne" => Some(Quantifier::ExistsOne),
            "filter" | "map" => None,
            _ => return None,
        };
        let (filter, body) = match (name, rest) {
            ("filter", [filter]) => (Some(filter), first),
            ("map", [filter, body]) => (Some(filter), body),
            (_, [body]) => (None, body),
            _ => return None,
        };
        Some(Self { variable, quantifier, filter, body })
    }
}
