//! Operators between two operands, and how tight they bind.

use super::{
    expression::{Comparison, Operator},
    mistake::RuleMistake,
    tokens::ExpressionToken,
    tree::{Tree, TreeNode, tree},
};

/// What stands between two operands.
#[derive(Debug, Clone, Copy)]
pub(super) enum BinaryOperation {
    Or,
    And,
    Compare(Comparison),
    In,
    Calculate(Operator),
}

impl BinaryOperation {
    /// How tight those bind that bind least.
    pub(super) const LOOSEST: u8 = 0;

    /// The operator that a token is, if it is one.
    pub(super) fn of(token: &ExpressionToken) -> Option<Self> {
        let symbol = match token {
            ExpressionToken::Symbol(symbol) => *symbol,
            ExpressionToken::Name(name) if name == "in" => return Some(Self::In),
            _ => return None,
        };
        Some(match symbol {
            "||" => Self::Or,
            "&&" => Self::And,
            "==" => Self::Compare(Comparison::Equal),
            "!=" => Self::Compare(Comparison::NotEqual),
            "<" => Self::Compare(Comparison::Less),
            "<=" => Self::Compare(Comparison::LessOrEqual),
            ">" => Self::Compare(Comparison::Greater),
            ">=" => Self::Compare(Comparison::GreaterOrEqual),
            "+" => Self::Calculate(Operator::Add),
            "-" => Self::Calculate(Operator::Subtract),
            "*" => Self::Calculate(Operator::Multiply),
            "/" => Self::Calculate(Operator::Divide),
            "%" => Self::Calculate(Operator::Remainder),
            _ => return None,
        })
    }

    pub(super) fn tightness(self) -> u8 {
        match self {
            Self::Or => Self::LOOSEST,
            Self::And => 1,
            Self::Compare(_) | Self::In => 2,
            Self::Calculate(Operator::Add | Operator::Subtract) => 3,
            Self::Calculate(_) => 4,
        }
    }

    /// The tree of an operator with its operands.
    pub(super) fn with(self, left: Tree, right: Tree) -> Result<Tree, RuleMistake> {
        let place = left.place.to(right.place);
        let node = match self {
            // How many parts there are does not make the tree deeper.
            Self::Or => match left.node {
                TreeNode::Or(mut parts) => {
                    parts.push(right);
                    TreeNode::Or(parts)
                }
                _ => TreeNode::Or(vec![left, right]),
            },
            Self::And => match left.node {
                TreeNode::And(mut parts) => {
                    parts.push(right);
                    TreeNode::And(parts)
                }
                _ => TreeNode::And(vec![left, right]),
            },
            Self::Compare(comparison) => TreeNode::Compare(comparison, Box::new([left, right])),
            Self::In => TreeNode::In(Box::new([left, right])),
            Self::Calculate(operator) => TreeNode::Arithmetic(operator, Box::new([left, right])),
        };
        tree(place, node)
    }
}
