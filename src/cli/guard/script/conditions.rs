//! Conditions: which tests of which fields they are.

use super::{
    ast::ScriptExpression,
    run::ScriptRun,
    tokens::GuardScriptLanguage,
    values::{ScriptBranches, ScriptCondition, ScriptState, ScriptValue},
};
use crate::cli::guard::{
    pattern::{ForeignPattern, LetterCase, PatternFlavour, PatternPlace, SystemCharacters},
    text::{AbsentField, FieldTest, GuardField, Unclear},
};

impl ScriptRun {
    /// Goes on where an expression is true, and where it is not. What need not be asked is not.
    pub(super) fn asked(
        &mut self,
        expression: &ScriptExpression,
        mut state: ScriptState,
    ) -> Result<ScriptBranches, Unclear> {
        match expression {
            ScriptExpression::Not(inner) => {
                let ScriptBranches { holds, fails } = self.asked(inner, state)?;
                Ok(ScriptBranches { holds: fails, fails: holds })
            }
            ScriptExpression::And(left, right) => {
                let first = self.asked(left, state)?;
                let mut branches = ScriptBranches { holds: Vec::new(), fails: first.fails };
                for state in first.holds {
                    let second = self.asked(right, state)?;
                    branches.holds.extend(second.holds);
                    branches.fails.extend(second.fails);
                }
                Ok(branches)
            }
            ScriptExpression::Or(left, right) => {
                let first = self.asked(left, state)?;
                let mut branches = ScriptBranches { holds: first.holds, fails: Vec::new() };
                for state in first.fails {
                    let second = self.asked(right, state)?;
                    branches.holds.extend(second.holds);
                    branches.fails.extend(second.fails);
                }
                Ok(branches)
            }
            expression => {
                let condition = self.condition(expression, &mut state)?;
                if state.goes_on() { self.decided(&condition, state) } else { Ok(ScriptBranches::default()) }
            }
        }
    }

    /// The condition that an expression is.
    pub(super) fn condition(
        &mut self,
        expression: &ScriptExpression,
        state: &mut ScriptState,
    ) -> Result<ScriptCondition, Unclear> {
        match expression {
            ScriptExpression::Not(inner) => self.condition(inner, state).map(ScriptCondition::negated),
            ScriptExpression::And(left, right) => {
                Ok(self.condition(left, state)?.both(self.condition(right, state)?))
            }
            ScriptExpression::Equal(left, right) => {
                if let (ScriptExpression::Call(callee, given), ScriptExpression::Text(kind)) =
                    (&**left, &**right)
                    && let ([value], Some("typeof"), "string") =
                        (given.as_slice(), callee.dotted().as_deref(), kind.as_str())
                    && let ScriptValue::Field(field) = self.evaluate(value, state)?
                {
                    return Ok(is_text(&field));
                }
                let left = self.evaluate(left, state)?;
                let right = self.evaluate(right, state)?;
                self.equal(&left, &right)
            }
            ScriptExpression::In(item, list) => {
                let item = self.evaluate(item, state)?;
                let list = self.evaluate(list, state)?;
                self.is_in(&item, &list, state)
            }
            expression => {
                let value = self.evaluate(expression, state)?;
                self.truth(&value)
            }
        }
    }

    /// Whether a value counts as true.
    fn truth(&self, value: &ScriptValue) -> Result<ScriptCondition, Unclear> {
        Ok(match value {
            ScriptValue::Condition(condition) => condition.clone(),
            ScriptValue::Nothing => ScriptCondition::Known(false),
            ScriptValue::Field(field) => is_filled(field),
            ScriptValue::Text(text) => match text.known() {
                Some(text) => ScriptCondition::Known(!text.is_empty()),
                None => return Unclear::new("whether a text is empty"),
            },
            _ => return Unclear::new("a condition that is not understood"),
        })
    }

    fn equal(&self, left: &ScriptValue, right: &ScriptValue) -> Result<ScriptCondition, Unclear> {
        match (left, right) {
            (ScriptValue::Field(field), ScriptValue::Text(text))
            | (ScriptValue::Text(text), ScriptValue::Field(field)) => {
                let Some(text) = text.known() else { return Unclear::new("it compares two fields") };
                Ok(one_of(field, vec![text.to_owned()]))
            }
            (ScriptValue::Text(one), ScriptValue::Text(other)) => match (one.known(), other.known()) {
                (Some(one), Some(other)) => Ok(ScriptCondition::Known(one == other)),
                _ => Unclear::new("it compares texts with fields in them"),
            },
            (ScriptValue::Field(field), ScriptValue::Nothing) => match field.absent {
                AbsentField::Undefined => {
                    Ok(ScriptCondition::Test(field.clone(), FieldTest::IsThere).negated())
                }
                AbsentField::Text(_) => Ok(ScriptCondition::Known(false)),
            },
            _ => Unclear::new("a comparison that is not understood"),
        }
    }

    /// `item in list`, `part in text`.
    pub(super) fn is_in(
        &mut self,
        item: &ScriptValue,
        list: &ScriptValue,
        state: &mut ScriptState,
    ) -> Result<ScriptCondition, Unclear> {
        match (item, list) {
            (ScriptValue::Text(part), ScriptValue::Field(field)) => match part.known() {
                Some(part) => {
                    self.needs(field, state)?;
                    Ok(ScriptCondition::Test(field.clone(), FieldTest::Contains(part.to_owned())))
                }
                None => Unclear::new("it looks for a field in another"),
            },
            (ScriptValue::Field(field), ScriptValue::List(items)) => {
                let texts: Option<Vec<String>> =
                    items.iter().map(|item| item.known_text().map(str::to_owned)).collect();
                match texts {
                    Some(texts) => Ok(one_of(field, texts)),
                    None => Unclear::new("a list of more than texts"),
                }
            }
            (ScriptValue::Text(one), ScriptValue::Text(other)) => match (one.known(), other.known()) {
                (Some(one), Some(other)) => Ok(ScriptCondition::Known(other.contains(one))),
                _ => Unclear::new("a text with a field in it"),
            },
            _ => Unclear::new("`in` that is not understood"),
        }
    }

    /// Whether a field has a match of a pattern.
    pub(super) fn found(
        &mut self,
        pattern: &ScriptValue,
        field: &GuardField,
        place: PatternPlace,
        state: &mut ScriptState,
    ) -> Result<ScriptCondition, Unclear> {
        let (source, is_case_ignored) = match pattern {
            ScriptValue::Pattern { source, is_case_ignored } => (source.as_str(), *is_case_ignored),
            ScriptValue::Text(text) => match text.known() {
                Some(text) => (text, false),
                None => return Unclear::new("a pattern that is not known"),
            },
            _ => return Unclear::new("a pattern that is not known"),
        };
        let mut field = field.clone();
        let flavour = match self.language {
            GuardScriptLanguage::Python => {
                self.needs(&field, state)?;
                PatternFlavour::Python
            }
            GuardScriptLanguage::JavaScript => {
                if field.absent == AbsentField::Undefined {
                    field.absent = AbsentField::Text("undefined".to_owned());
                }
                PatternFlavour::JavaScript
            }
        };
        let case = if is_case_ignored { LetterCase::Ignored } else { LetterCase::Matters };
        let characters = SystemCharacters::Unicode;
        let test = ForeignPattern { text: source, flavour, place, case, characters }.test()?;
        Ok(ScriptCondition::Test(field, test))
    }
}

/// Whether a field is there and not empty.
fn is_filled(field: &GuardField) -> ScriptCondition {
    let absent = match &field.absent {
        AbsentField::Undefined => AbsentField::Text(String::new()),
        known @ AbsentField::Text(_) => known.clone(),
    };
    let field = GuardField { absent, ..field.clone() };
    ScriptCondition::Test(field, FieldTest::OneOf(vec![String::new()])).negated()
}

/// Whether a field is one of these texts. One that is missing is none.
fn one_of(field: &GuardField, texts: Vec<String>) -> ScriptCondition {
    match field.absent {
        AbsentField::Undefined if texts.iter().any(String::is_empty) => {
            let is_there = ScriptCondition::Test(field.clone(), FieldTest::IsThere);
            is_there.both(ScriptCondition::Test(field.clone(), FieldTest::OneOf(texts)))
        }
        _ => ScriptCondition::Test(field.clone(), FieldTest::OneOf(texts)),
    }
}

/// Whether a field is there as a text.
pub(super) fn is_text(field: &GuardField) -> ScriptCondition {
    match field.absent {
        AbsentField::Undefined => ScriptCondition::Test(field.clone(), FieldTest::IsThere),
        AbsentField::Text(_) => ScriptCondition::Known(true),
    }
}

/// Whether a field has one of these texts where a method looks for it.
pub(super) fn tested(
    field: &GuardField,
    method: &str,
    text: &ScriptValue,
) -> Result<ScriptCondition, Unclear> {
    let texts: Vec<&ScriptValue> = match text {
        ScriptValue::List(items) => items.iter().collect(),
        one => vec![one],
    };
    let mut whole = ScriptCondition::Known(false);
    for text in texts {
        let Some(text) = text.known_text().map(str::to_owned) else {
            return Unclear::new("it looks for a text that is not known");
        };
        let test = match method {
            "includes" => FieldTest::Contains(text),
            "startsWith" | "startswith" => FieldTest::StartsWith(text),
            _ => FieldTest::EndsWith(text),
        };
        whole = whole.either(ScriptCondition::Test(field.clone(), test));
    }
    Ok(whole)
}
