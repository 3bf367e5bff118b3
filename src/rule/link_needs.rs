//! What rules want to know of links: whether they ask for any, and which paths they name themselves.

use std::sync::Arc;

use super::{
    expression::{Expression, ExpressionKind, Literal},
    file_fact::FileFact,
};
use crate::model::{LONGEST_PATH, LinkNeeds};

/// The functions whose results depend on links.
const FOLLOWING: [&str; 4] = ["path.within", "path.touches", "path.resolve", "shell.resolved"];

/// The most paths of a hook's own.
const MOST_CONSTANTS: usize = 1_024;

/// What these expressions and files want; none if no expression asks for links.
pub(super) fn of<'e>(
    expressions: impl Iterator<Item = &'e Expression>,
    facts: &[FileFact],
) -> Option<Arc<LinkNeeds>> {
    let mut found = FoundNeeds { follows: false, constants: Vec::new() };
    expressions.for_each(|expression| found.look(expression));
    if !found.follows {
        return None;
    }
    for fact in facts {
        fact.each_text(&mut |text| found.add(text));
    }
    found.constants.sort_unstable();
    found.constants.dedup();
    Some(Arc::new(LinkNeeds { constants: found.constants.into() }))
}

struct FoundNeeds {
    follows: bool,
    constants: Vec<Box<str>>,
}

impl FoundNeeds {
    fn look(&mut self, expression: &Expression) {
        match &expression.kind {
            ExpressionKind::Literal(Literal::Text(text)) => self.add(text),
            ExpressionKind::Call(function, _) => self.follows |= FOLLOWING.contains(&function.name),
            _ => {}
        }
        expression.parts().into_iter().for_each(|part| self.look(part));
    }

    fn add(&mut self, text: &str) {
        let may_be_path = (text.contains('/') || text.starts_with('.') || !text.contains([' ', '(']))
            && !text.is_empty()
            && text.len() <= LONGEST_PATH
            && !text.contains(['\n', '\0']);
        if may_be_path && self.constants.len() < MOST_CONSTANTS {
            self.constants.push(text.into());
        }
    }
}
