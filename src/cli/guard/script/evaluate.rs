//! Expressions: what they are where the input is not known.

use super::{
    ast::ScriptExpression,
    run::ScriptRun,
    tokens::GuardScriptLanguage,
    values::{ScriptCondition, ScriptFlow, ScriptState, ScriptValue},
};
use crate::cli::guard::text::{AbsentField, FieldTest, GuardField, GuardText, Unclear};

type Evaluated = Result<ScriptValue, Unclear>;

impl ScriptRun {
    pub(super) fn evaluate(&mut self, expression: &ScriptExpression, state: &mut ScriptState) -> Evaluated {
        self.bounds.step()?;
        Ok(match expression {
            ScriptExpression::Text(text) => ScriptValue::text(text.clone()),
            ScriptExpression::Number(number) => ScriptValue::Number(*number),
            ScriptExpression::Truth(is) => ScriptValue::Condition(ScriptCondition::Known(*is)),
            ScriptExpression::Nothing => ScriptValue::Nothing,
            ScriptExpression::List(items) => {
                let items: Result<Vec<ScriptValue>, Unclear> =
                    items.iter().map(|item| self.evaluate(item, state)).collect();
                ScriptValue::List(items?)
            }
            ScriptExpression::Object(entries) => {
                let mut fields = Vec::new();
                for (key, value) in entries {
                    fields.push((key.clone(), self.evaluate(value, state)?));
                }
                ScriptValue::Object(fields)
            }
            ScriptExpression::Name(name) => self.named(name, state)?,
            ScriptExpression::Member(of, name) => self.member(expression, of, name, state)?,
            ScriptExpression::Index(of, key) => self.indexed(of, key, state)?,
            ScriptExpression::Call(callee, arguments) => self.value_of_call(callee, arguments, state)?,
            ScriptExpression::Named(_, _)
            | ScriptExpression::Each { .. }
            | ScriptExpression::Choice { .. } => {
                return Unclear::new("an argument that is not understood");
            }
            ScriptExpression::Or(left, right) | ScriptExpression::Otherwise(left, right) => {
                let is_or = matches!(expression, ScriptExpression::Or(_, _));
                self.alternative(left, right, is_or, state)?
            }
            ScriptExpression::Not(_)
            | ScriptExpression::And(_, _)
            | ScriptExpression::Equal(_, _)
            | ScriptExpression::In(_, _) => ScriptValue::Condition(self.condition(expression, state)?),
            ScriptExpression::Add(parts) => {
                let mut text = GuardText::default();
                for part in parts {
                    let value = self.evaluate(part, state)?;
                    text.add(self.as_text(&value)?);
                }
                ScriptValue::Text(text)
            }
            ScriptExpression::Regex { source, flags } => match flags.as_str() {
                "" | "i" => ScriptValue::Pattern { source: source.clone(), is_case_ignored: flags == "i" },
                flags => return Unclear::new(format!("a pattern with the flags `{flags}`")),
            },
            ScriptExpression::Function(function) => ScriptValue::Function(std::rc::Rc::clone(function)),
        })
    }

    fn named(&self, name: &str, state: &ScriptState) -> Evaluated {
        match (state.variables.get(name), self.language, name) {
            (Some(value), _, _) => Ok(value.clone()),
            (None, GuardScriptLanguage::Python, "__name__") => Ok(ScriptValue::text("__main__")),
            _ => Unclear::new(format!("the name `{name}`")),
        }
    }

    /// `a.b`.
    fn member(
        &mut self,
        whole: &ScriptExpression,
        of: &ScriptExpression,
        name: &str,
        state: &mut ScriptState,
    ) -> Evaluated {
        if let Some(dotted) = whole.dotted()
            && matches!(
                dotted.as_str(),
                "process.stdin" | "sys.stdin" | "sys.stderr" | "re.IGNORECASE" | "re.I"
            )
        {
            return Ok(match name {
                "stdin" => ScriptValue::Input,
                "stderr" => ScriptValue::Opaque,
                _ => ScriptValue::text("re.I"),
            });
        }
        match self.evaluate(of, state)? {
            ScriptValue::Part(path) if self.language == GuardScriptLanguage::JavaScript => {
                Ok(part(path, name, AbsentField::Undefined))
            }
            ScriptValue::Object(fields) => match fields.into_iter().find(|(key, _)| key == name) {
                Some((_, value)) => Ok(value),
                None => Ok(ScriptValue::Nothing),
            },
            _ => Unclear::new(format!("`.{name}`")),
        }
    }

    /// `a["b"]`.
    fn indexed(
        &mut self,
        of: &ScriptExpression,
        key: &ScriptExpression,
        state: &mut ScriptState,
    ) -> Evaluated {
        let of = self.evaluate(of, state)?;
        let key = self.evaluate(key, state)?;
        match (of, key.known_text(), self.language) {
            (ScriptValue::Part(path), Some(key), GuardScriptLanguage::JavaScript) => {
                Ok(part(path, key, AbsentField::Undefined))
            }
            (ScriptValue::Part(path), Some(key), GuardScriptLanguage::Python) => {
                let part = part(path, key, AbsentField::Undefined);
                // Python ends with an error where it is missing.
                if let ScriptValue::Field(field) = &part {
                    self.needs(field, state)?;
                }
                Ok(part)
            }
            _ => Unclear::new("an element that is not known"),
        }
    }

    /// Ends this way with an error where a field is missing.
    pub(super) fn needs(&mut self, field: &GuardField, state: &mut ScriptState) -> Result<(), Unclear> {
        if field.absent != AbsentField::Undefined {
            return Ok(());
        }
        let fork = self.bounds.fork(&state.path, field.clone(), FieldTest::IsThere)?;
        if let Some(path) = fork.fails {
            self.failed.push(ScriptState { flow: ScriptFlow::Failed, ..state.with_path(path) });
        }
        match fork.holds {
            Some(path) => state.path = path,
            None => state.flow = ScriptFlow::Failed,
        }
        Ok(())
    }

    /// `a or b`, `a ?? b`.
    fn alternative(
        &mut self,
        left: &ScriptExpression,
        right: &ScriptExpression,
        is_or: bool,
        state: &mut ScriptState,
    ) -> Evaluated {
        let value = self.evaluate(left, state)?;
        let other = self.evaluate(right, state)?;
        match (value, other) {
            (ScriptValue::Field(field), ScriptValue::Text(text)) => {
                let Some(text) = text.known() else {
                    return Unclear::new("another text where one is missing");
                };
                let absent = match field.absent {
                    AbsentField::Undefined => AbsentField::Text(text.to_owned()),
                    AbsentField::Text(known) if known.is_empty() && is_or => {
                        AbsentField::Text(text.to_owned())
                    }
                    known @ AbsentField::Text(_) => known,
                };
                // An empty text would be another one, too.
                if is_or && !text.is_empty() {
                    return Unclear::new("another text where one is empty");
                }
                Ok(ScriptValue::Field(GuardField { absent, ..field }))
            }
            (part @ ScriptValue::Part(_), ScriptValue::Object(fields)) if fields.is_empty() => Ok(part),
            (ScriptValue::Condition(one), ScriptValue::Condition(other)) if is_or => {
                Ok(ScriptValue::Condition(one.either(other)))
            }
            _ => Unclear::new("it takes another field where one is missing"),
        }
    }

    /// A value within a text.
    pub(super) fn as_text(&self, value: &ScriptValue) -> Result<GuardText, Unclear> {
        match value {
            ScriptValue::Text(text) => Ok(text.clone()),
            ScriptValue::Number(number) => Ok(GuardText::literal(number.to_string())),
            ScriptValue::Field(field) => {
                let mut field = field.clone();
                if field.absent == AbsentField::Undefined {
                    let word =
                        if self.language == GuardScriptLanguage::Python { "None" } else { "undefined" };
                    field.absent = AbsentField::Text(word.to_owned());
                }
                Ok(GuardText::field(field))
            }
            _ => Unclear::new("a text of what is none"),
        }
    }
}

/// A part of the input: its tool's input, or a field.
pub(super) fn part(mut path: Vec<String>, key: &str, absent: AbsentField) -> ScriptValue {
    path.push(key.to_owned());
    if path == ["tool_input"] {
        return ScriptValue::Part(path);
    }
    ScriptValue::Field(GuardField { path, absent, is_cut: false })
}
