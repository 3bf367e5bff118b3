//! Signs of which languages differ: what is in words, and what counts twice.

use super::syntax::{ClassItem, PatternNode};

/// Beside something that is repeated.
pub(super) const UNCLEAR: (Beside, Beside) = (Beside::Unclear, Beside::Unclear);

/// What is beside a part of a pattern: whether it can be a sign that is in words here and not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    /// It cannot.
    Plain,
    /// The pattern asks for nothing more, or for any number of any signs.
    Nothing,
    Unclear,
}

/// A side of a part of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeSide {
    Start,
    End,
}

impl Beside {
    /// What is on this side of a part.
    pub(super) fn of(node: &PatternNode, side: NodeSide) -> Self {
        match node {
            PatternNode::Char(c) if c.is_ascii() => Self::Plain,
            PatternNode::Class(class) if !class.is_negated && class.items.iter().all(is_plain) => Self::Plain,
            PatternNode::Start | PatternNode::End | PatternNode::TextEnd => Self::Plain,
            PatternNode::Sequence(nodes) => {
                let outer = if side == NodeSide::Start { nodes.first() } else { nodes.last() };
                outer.map_or(Self::Unclear, |node| Self::of(node, side))
            }
            PatternNode::Either(branches) => {
                let of_branches = || branches.iter().map(|branch| Self::of(branch, side));
                if of_branches().all(|beside| beside == Self::Plain) { Self::Plain } else { Self::Unclear }
            }
            PatternNode::Repeat(node, 0, None) => match &**node {
                PatternNode::Any => Self::Nothing,
                PatternNode::Class(class) if class.is_negated && class.items.iter().all(is_plain) => {
                    Self::Nothing
                }
                _ => Self::Unclear,
            },
            PatternNode::Repeat(node, 1.., _) => Self::of(node, side),
            _ => Self::Unclear,
        }
    }
}

/// Whether an item has only signs that are in words everywhere, or nowhere.
fn is_plain(item: &ClassItem) -> bool {
    match item {
        ClassItem::Range(_, last) => last.is_ascii(),
        ClassItem::Space => true,
        ClassItem::Digit | ClassItem::Word | ClassItem::Named(_) => false,
    }
}

/// Whether a sign that JavaScript takes for two decides: one that is matched once, some times, or by several parts.
pub(super) fn counts_units(node: &PatternNode) -> bool {
    fn is_wide(node: &PatternNode) -> bool {
        match node {
            PatternNode::Any => true,
            PatternNode::Class(class) => class.is_negated,
            _ => false,
        }
    }
    /// How many such signs a match has at least, or none if a part counts them.
    fn least(node: &PatternNode) -> Option<u32> {
        match node {
            PatternNode::Any | PatternNode::Class(_) if is_wide(node) => None,
            PatternNode::Repeat(repeated, least @ 0..=1, None) if is_wide(repeated) => Some(*least),
            PatternNode::Repeat(repeated, ..) if is_wide(repeated) => None,
            PatternNode::Repeat(repeated, ..) if matches!(**repeated, PatternNode::Char('\u{10000}'..)) => {
                None
            }
            PatternNode::Repeat(repeated, ..) => least(repeated).filter(|least| *least == 0),
            PatternNode::Sequence(nodes) => nodes.iter().map(least).sum(),
            PatternNode::Either(branches) => {
                branches.iter().map(least).try_fold(0, |most, least| Some(most.max(least?)))
            }
            _ => Some(0),
        }
    }
    least(node).is_none_or(|least| least > 1)
}
