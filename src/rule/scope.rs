//! What expressions are checked against, and what they become.

use std::sync::atomic::AtomicU32;

use super::{
    expression::{Expression, ExpressionKind, NamedExpression},
    file_fact::FileFact,
    mistake::RuleMistake,
    situation::Situation,
    types::Type,
};
use crate::model::EventKind;

/// What an expression is checked against.
pub(super) struct RuleScope<'s> {
    /// The event kinds that the rule judges.
    pub(super) kinds: &'s [EventKind],
    /// What is known of the events that the hook runs for.
    pub(super) situations: &'s [Situation],
    /// How much more is looked at to find out what is known before there is an event.
    pub(super) left_to_fold: &'s AtomicU32,
    /// What files of the handler have.
    pub(super) facts: &'s [FileFact],
    /// The named expressions of the handler: first those of all its rules, then those of each.
    pub(super) named: &'s [NamedExpression],
    /// How many are of all rules.
    pub(super) shared: usize,
    /// Where those of the rule begin.
    pub(super) own: usize,
}

impl RuleScope<'_> {
    /// The named expression that the rule means by a name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let fits = |at: &usize| *self.named[*at].name == *name;
        (self.own..self.named.len()).rev().find(fits).or_else(|| (0..self.shared).rev().find(fits))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let visible = self.named[..self.shared].iter().chain(&self.named[self.own..]);
        visible.map(|named| &*named.name)
    }
}

/// What an expression becomes, and its type.
pub(super) type Checked = Result<(ExpressionKind, Type), RuleMistake>;

/// Reports an expression that can never have the type.
pub(super) fn wants(expression: &Expression, wanted: &Type) -> Result<(), RuleMistake> {
    if expression.result.fits(wanted) {
        return Ok(());
    }
    let message = format!("this is {}, not {wanted}", expression.result);
    let help = match (&expression.result, wanted) {
        (Type::List(_), Type::Bool) => "ask with `.exists(x, …)`, or compare its `size()`",
        (Type::String, Type::Bool) => "compare it: `== '…'`",
        _ => "write an expression of that type",
    };
    Err(RuleMistake::new(message, help).at(expression.place))
}
