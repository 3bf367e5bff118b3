//! Expressions as they are written: trees, whose depth is bounded.

use super::{
    expression::{Comparison, Literal, Operator},
    mistake::{RuleMistake, TextPlace},
};

/// How deep a tree may be. What reads and evaluates it recurses.
pub(super) const DEEPEST: usize = 64;

/// A part of an expression as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tree {
    pub(super) node: TreeNode,
    pub(super) place: TextPlace,
    pub(super) depth: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TreeNode {
    Literal(Literal),
    Name(String),
    Select(Box<Tree>, String),
    /// With the object of a method, the name and its place, and the arguments.
    Call(Option<Box<Tree>>, String, TextPlace, Vec<Tree>),
    Element(Box<[Tree; 2]>),
    Not(Box<Tree>),
    Negate(Box<Tree>),
    And(Vec<Tree>),
    Or(Vec<Tree>),
    Compare(Comparison, Box<[Tree; 2]>),
    In(Box<[Tree; 2]>),
    Arithmetic(Operator, Box<[Tree; 2]>),
    Conditional(Box<[Tree; 3]>),
    List(Vec<Tree>),
    Map(Vec<(Tree, Tree)>),
}

/// The mistake of an expression that is too deep.
pub(super) fn too_deep(place: TextPlace) -> RuleMistake {
    RuleMistake::new("the expression is nested too deep", "divide it by `let`").at(place)
}

/// A part, unless it is too deep.
pub(super) fn tree(place: TextPlace, node: TreeNode) -> Result<Tree, RuleMistake> {
    let deepest = |trees: &[Tree]| trees.iter().map(|tree| tree.depth).max().unwrap_or_default();
    let below = match &node {
        TreeNode::Literal(_) | TreeNode::Name(_) => 0,
        TreeNode::Select(inner, _) | TreeNode::Not(inner) | TreeNode::Negate(inner) => inner.depth,
        TreeNode::Call(object, _, _, arguments) => {
            object.as_ref().map_or(0, |object| object.depth).max(deepest(arguments))
        }
        TreeNode::Element(parts)
        | TreeNode::Compare(_, parts)
        | TreeNode::In(parts)
        | TreeNode::Arithmetic(_, parts) => deepest(&**parts),
        TreeNode::Conditional(parts) => deepest(&**parts),
        TreeNode::And(parts) | TreeNode::Or(parts) | TreeNode::List(parts) => deepest(parts),
        TreeNode::Map(entries) => {
            entries.iter().map(|(key, value)| key.depth.max(value.depth)).max().unwrap_or_default()
        }
    };
    if below >= DEEPEST {
        return Err(too_deep(place));
    }
    Ok(Tree { node, place, depth: below + 1 })
}
