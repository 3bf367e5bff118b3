//! What scripts print: texts, and JSON.

use serde_json::Value;

use super::{
    ast::ScriptExpression,
    run::ScriptRun,
    values::{ScriptCondition, ScriptState, ScriptValue},
};
use crate::cli::guard::text::{GuardText, TextPiece, Unclear};

impl ScriptRun {
    /// `print(text, file=sys.stderr)`.
    pub(super) fn print(
        &mut self,
        arguments: &[ScriptExpression],
        state: &mut ScriptState,
    ) -> Result<ScriptValue, Unclear> {
        let mut text = GuardText::default();
        let mut is_error = false;
        for (at, argument) in arguments.iter().enumerate() {
            match argument {
                ScriptExpression::Named(name, file)
                    if name == "file" && file.dotted().as_deref() == Some("sys.stderr") =>
                {
                    is_error = true;
                }
                ScriptExpression::Named(name, _) if name == "flush" => {}
                ScriptExpression::Named(name, _) => return Unclear::new(format!("`print` with `{name}`")),
                argument => {
                    let value = self.evaluate(argument, state)?;
                    text.add(GuardText::literal(if at == 0 { "" } else { " " }));
                    text.add(self.as_text(&value)?);
                }
            }
        }
        text.add(GuardText::literal("\n"));
        if is_error {
            state.path.err.add(text);
        } else {
            state.path.out.add(text);
        }
        Ok(ScriptValue::Nothing)
    }

    /// The JSON of a value.
    pub(super) fn json(&self, value: &ScriptValue) -> Result<GuardText, Unclear> {
        Ok(match value {
            ScriptValue::Text(_) | ScriptValue::Field(_) => {
                let mut quoted = GuardText::literal("\"");
                for piece in self.as_text(value)?.0 {
                    quoted.add(match piece {
                        TextPiece::Literal(text) => {
                            let json = Value::from(text).to_string();
                            GuardText::literal(json[1..json.len() - 1].to_owned())
                        }
                        TextPiece::Field(field) => GuardText(vec![TextPiece::Quoted(field)]),
                        TextPiece::Quoted(_) => return Unclear::new("JSON within JSON"),
                    });
                }
                quoted.with(GuardText::literal("\""))
            }
            ScriptValue::Condition(ScriptCondition::Known(is)) => GuardText::literal(is.to_string()),
            ScriptValue::Number(number) => GuardText::literal(number.to_string()),
            ScriptValue::Nothing => GuardText::literal("null"),
            ScriptValue::Object(fields) => {
                let mut text = GuardText::literal("{");
                for (at, (key, value)) in fields.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    text.add(GuardText::literal(format!("{comma}{}:", Value::from(key.as_str()))));
                    text.add(self.json(value)?);
                }
                text.with(GuardText::literal("}"))
            }
            _ => return Unclear::new("JSON of what is not known"),
        })
    }
}
