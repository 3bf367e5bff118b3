//! The functions that guards call.

use std::rc::Rc;

use super::{
    ast::{ScriptExpression, ScriptStatement},
    conditions::{is_text, tested},
    evaluate::part,
    run::ScriptRun,
    tokens::GuardScriptLanguage,
    values::{ScriptCondition, ScriptFlow, ScriptState, ScriptValue},
};
use crate::cli::guard::{
    pattern::PatternPlace,
    text::{AbsentField, GuardText, Unclear},
};

type Evaluated = Result<ScriptValue, Unclear>;

impl ScriptRun {
    /// A call that is a statement: it may end the script, or be one of a function of the script.
    pub(super) fn called(
        &mut self,
        callee: &ScriptExpression,
        arguments: &[ScriptExpression],
        mut state: ScriptState,
    ) -> Result<Vec<(ScriptValue, ScriptState)>, Unclear> {
        let dotted = callee.dotted().unwrap_or_default();
        let own = match state.variables.get(&dotted) {
            Some(ScriptValue::Function(function)) => Some(Rc::clone(function)),
            _ => None,
        };
        if let Some(function) = own {
            let values = self.values(arguments, &mut state)?;
            let after = self.call(&function, values, &state)?;
            return Ok(after.into_iter().map(returned_value).collect());
        }
        match (dotted.as_str(), arguments) {
            (
                "sys.exit" | "exit" | "quit" | "process.exit" | "os._exit",
                [ScriptExpression::Call(inner, given)],
            ) => {
                let mut ended = Vec::new();
                for (value, mut state) in self.called(inner, given, state)? {
                    if state.goes_on() {
                        self.exit(&value, &mut state)?;
                    }
                    ended.push((value, state));
                }
                Ok(ended)
            }
            ("sys.exit" | "exit" | "quit" | "process.exit" | "os._exit", arguments) => {
                let values = self.values(arguments, &mut state)?;
                self.exit(values.first().unwrap_or(&ScriptValue::Nothing), &mut state)?;
                Ok(vec![(ScriptValue::Nothing, state)])
            }
            ("process.stdin.on", [ScriptExpression::Text(event), ScriptExpression::Function(function)]) => {
                if event == "end" {
                    state.deferred = Some(Rc::clone(function));
                    return Ok(vec![(ScriptValue::Nothing, state)]);
                }
                let after = self.each_part(function, state)?;
                Ok(vec![(ScriptValue::Nothing, after)])
            }
            (pushed, [part]) if matches!(pushed.rsplit_once('.'), Some((_, "push"))) => {
                self.collect(pushed.trim_end_matches(".push"), part, &mut state)?;
                Ok(vec![(ScriptValue::Nothing, state)])
            }
            ("process.stdin.setEncoding" | "process.stdin.resume", _) => {
                Ok(vec![(ScriptValue::Nothing, state)])
            }
            _ => {
                let value = self.value_of_call(callee, arguments, &mut state)?;
                Ok(vec![(value, state)])
            }
        }
    }

    /// `list.push(part)`: the parts of the input are put together.
    fn collect(
        &mut self,
        list: &str,
        part: &ScriptExpression,
        state: &mut ScriptState,
    ) -> Result<(), Unclear> {
        let is_empty = match state.variables.get(list) {
            Some(ScriptValue::List(items)) => items.is_empty(),
            Some(ScriptValue::Input) => true,
            _ => false,
        };
        if !is_empty || !matches!(self.evaluate(part, state)?, ScriptValue::Input) {
            return Unclear::new("a list that grows");
        }
        state.variables.insert(list.to_owned(), ScriptValue::Input);
        Ok(())
    }

    /// What is done with each part of the input: it is put together.
    fn each_part(
        &mut self,
        function: &super::ast::ScriptFunction,
        mut state: ScriptState,
    ) -> Result<ScriptState, Unclear> {
        let [parameter] = function.parameters.as_slice() else { return Unclear::new("a part of the input") };
        let refuse = || Unclear::new("what it does with a part of the input");
        let body = match function.body.as_slice() {
            [ScriptStatement::Append(name, ScriptExpression::Name(part))] if part == parameter => name,
            [
                ScriptStatement::Return(Some(ScriptExpression::Call(callee, arguments)))
                | ScriptStatement::Expression(ScriptExpression::Call(callee, arguments)),
            ] => match (callee.as_ref(), arguments.as_slice()) {
                (ScriptExpression::Member(of, method), [ScriptExpression::Name(part)])
                    if part == parameter && (method == "+=" || method == "push") =>
                {
                    match of.as_ref() {
                        ScriptExpression::Name(name) => name,
                        _ => return refuse(),
                    }
                }
                _ => return refuse(),
            },
            _ => return refuse(),
        };
        state.variables.insert(body.clone(), ScriptValue::Input);
        Ok(state)
    }

    fn values(
        &mut self,
        arguments: &[ScriptExpression],
        state: &mut ScriptState,
    ) -> Result<Vec<ScriptValue>, Unclear> {
        arguments.iter().map(|argument| self.evaluate(argument, state)).collect()
    }

    /// What a call is that ends nothing.
    pub(super) fn value_of_call(
        &mut self,
        callee: &ScriptExpression,
        arguments: &[ScriptExpression],
        state: &mut ScriptState,
    ) -> Evaluated {
        let dotted = callee.dotted().unwrap_or_default();
        let root = dotted.split('.').next().unwrap_or_default();
        if !state.variables.contains_key(root)
            && let Some(value) = self.built_in(&dotted, arguments, state)?
        {
            return Ok(value);
        }
        match callee {
            ScriptExpression::Member(of, method) => self.method(of, method, arguments, state),
            _ => Unclear::new(format!("the function `{dotted}`")),
        }
    }

    fn built_in(
        &mut self,
        name: &str,
        arguments: &[ScriptExpression],
        state: &mut ScriptState,
    ) -> Result<Option<ScriptValue>, Unclear> {
        Ok(Some(match (name, arguments) {
            ("json.load" | "json.loads" | "JSON.parse" | "sys.stdin.read" | "Buffer.concat", arguments) => {
                let is_read = name == "sys.stdin.read";
                let values = self.values(arguments, state)?;
                match values.as_slice() {
                    [] if is_read => ScriptValue::Input,
                    [ScriptValue::Input] if name == "Buffer.concat" => ScriptValue::Input,
                    [ScriptValue::Input] => ScriptValue::Part(Vec::new()),
                    _ => return Unclear::new(format!("`{name}` of more than the input")),
                }
            }
            ("readFileSync" | "fs.readFileSync", [ScriptExpression::Number(0), ..]) => ScriptValue::Input,
            ("readFileSync" | "fs.readFileSync", [ScriptExpression::Text(file), ..])
                if file == "/dev/stdin" =>
            {
                ScriptValue::Input
            }
            ("print", arguments) => return self.print(arguments, state).map(Some),
            (
                "console.error"
                | "console.log"
                | "process.stderr.write"
                | "process.stdout.write"
                | "sys.stderr.write"
                | "sys.stdout.write",
                [text],
            ) => {
                let value = self.evaluate(text, state)?;
                let mut text = self.as_text(&value)?;
                if name.starts_with("console") {
                    text.add(GuardText::literal("\n"));
                }
                let is_error = name.contains("err");
                if is_error {
                    state.path.err.add(text);
                } else {
                    state.path.out.add(text);
                }
                ScriptValue::Nothing
            }
            _ => return self.built_in_of_values(name, arguments, state),
        }))
    }

    /// The functions that make a value of another one.
    fn built_in_of_values(
        &mut self,
        name: &str,
        arguments: &[ScriptExpression],
        state: &mut ScriptState,
    ) -> Result<Option<ScriptValue>, Unclear> {
        Ok(Some(match (name, arguments) {
            ("json.dumps" | "JSON.stringify", [value, ..]) => {
                let is_plain = arguments[1..]
                    .iter()
                    .all(|more| matches!(more, ScriptExpression::Named(name, _) if name == "ensure_ascii"));
                if !is_plain {
                    return Unclear::new("JSON with more than a value");
                }
                let value = self.evaluate(value, state)?;
                ScriptValue::Text(self.json(&value)?)
            }
            ("re.compile", _) => self.pattern(arguments, state)?,
            ("re.search" | "re.match" | "re.fullmatch", [pattern, text, rest @ ..]) => {
                let given: Vec<ScriptExpression> = std::iter::once(pattern).chain(rest).cloned().collect();
                let pattern = self.pattern(&given, state)?;
                let value = self.evaluate(text, state)?;
                return self.searched(&pattern, &value, name.trim_start_matches("re."), state).map(Some);
            }
            ("any" | "all", [ScriptExpression::Each { item, name: variable, list }]) => {
                ScriptValue::Condition(self.of_each(item, variable, list, name == "any", state)?)
            }
            ("str" | "String", [value]) => match self.evaluate(value, state)? {
                ScriptValue::Field(field) if field.absent != AbsentField::Undefined => {
                    ScriptValue::Field(field)
                }
                text @ ScriptValue::Text(_) => text,
                _ => return Unclear::new(format!("`{name}` of what may be missing")),
            },
            ("isinstance", [value, ScriptExpression::Name(kind)]) => {
                match (self.evaluate(value, state)?, kind.as_str()) {
                    (ScriptValue::Field(field), "str") => ScriptValue::Condition(is_text(&field)),
                    (ScriptValue::Part(_), "dict") => ScriptValue::Condition(ScriptCondition::Known(true)),
                    _ => return Unclear::new("a type that is not known"),
                }
            }
            _ => return Ok(None),
        }))
    }

    /// A pattern of Python, with its flags.
    fn pattern(&mut self, arguments: &[ScriptExpression], state: &mut ScriptState) -> Evaluated {
        let values = self.values(arguments, state)?;
        match values.as_slice() {
            [pattern @ ScriptValue::Pattern { .. }] => Ok(pattern.clone()),
            [source, flags @ ..] => {
                let is_case_ignored = match flags {
                    [] => false,
                    [flag] if flag.known_text() == Some("re.I") => true,
                    _ => return Unclear::new("a pattern with other flags"),
                };
                match source.known_text() {
                    Some(source) => Ok(ScriptValue::Pattern { source: source.to_owned(), is_case_ignored }),
                    None => Unclear::new("a pattern that is not known"),
                }
            }
            [] => Unclear::new("a pattern that is not known"),
        }
    }

    fn searched(
        &mut self,
        pattern: &ScriptValue,
        text: &ScriptValue,
        how: &str,
        state: &mut ScriptState,
    ) -> Evaluated {
        let place = match how {
            "match" => PatternPlace::AtStart,
            "fullmatch" => PatternPlace::Whole,
            _ => PatternPlace::Anywhere,
        };
        match text {
            ScriptValue::Field(field) => self.found(pattern, field, place, state).map(ScriptValue::Condition),
            _ => Unclear::new("a pattern for more than one field"),
        }
    }

    /// `any(… for name in list)`.
    fn of_each(
        &mut self,
        item: &ScriptExpression,
        name: &str,
        list: &ScriptExpression,
        is_any: bool,
        state: &mut ScriptState,
    ) -> Result<ScriptCondition, Unclear> {
        let ScriptValue::List(items) = self.evaluate(list, state)? else {
            return Unclear::new("a list that is not known");
        };
        let mut whole = ScriptCondition::Known(!is_any);
        let outer = state.variables.get(name).cloned();
        for value in items {
            state.variables.insert(name.to_owned(), value);
            let one = self.condition(item, state)?;
            whole = if is_any { whole.either(one) } else { whole.both(one) };
        }
        match outer {
            Some(value) => state.variables.insert(name.to_owned(), value),
            None => state.variables.remove(name),
        };
        Ok(whole)
    }

    fn method(
        &mut self,
        of: &ScriptExpression,
        method: &str,
        arguments: &[ScriptExpression],
        state: &mut ScriptState,
    ) -> Evaluated {
        let object = self.evaluate(of, state)?;
        match (&object, method, arguments) {
            (ScriptValue::List(items), "some" | "every", [ScriptExpression::Function(function)]) => {
                let [ScriptStatement::Return(Some(item))] = function.body.as_slice() else {
                    return Unclear::new("a function that is more than a test");
                };
                let [name] = function.parameters.as_slice() else {
                    return Unclear::new("a test of more than an item");
                };
                let mut inner = state.clone();
                inner.variables.insert("items of it".to_owned(), ScriptValue::List(items.clone()));
                let list = ScriptExpression::Name("items of it".to_owned());
                let condition = self.of_each(item, name, &list, method == "some", &mut inner)?;
                state.path = inner.path;
                return Ok(ScriptValue::Condition(condition));
            }
            (ScriptValue::Input, "read" | "toString", _) => return Ok(ScriptValue::Input),
            _ => {}
        }
        let values = self.values(arguments, state)?;
        match (&object, method, values.as_slice()) {
            (ScriptValue::Part(path), "get", [key, default @ ..]) => got(path, key, default),
            (ScriptValue::Pattern { .. }, "test" | "search" | "match" | "fullmatch", [text]) => {
                self.searched(&object, text, method, state)
            }
            (ScriptValue::Field(field), "match", [pattern])
                if self.language == GuardScriptLanguage::JavaScript =>
            {
                self.needs(field, state)?;
                self.found(pattern, field, PatternPlace::Anywhere, state).map(ScriptValue::Condition)
            }
            (ScriptValue::List(_), "includes", [item]) => {
                self.is_in(item, &object, state).map(ScriptValue::Condition)
            }
            (
                ScriptValue::Field(field),
                "includes" | "startsWith" | "endsWith" | "startswith" | "endswith",
                [text],
            ) => {
                self.needs(field, state)?;
                tested(field, method, text).map(ScriptValue::Condition)
            }
            _ => Unclear::new(format!("`.{method}(…)`")),
        }
    }
}

/// `part.get(key, default)`.
fn got(path: &[String], key: &ScriptValue, default: &[ScriptValue]) -> Evaluated {
    let Some(key) = key.known_text() else { return Unclear::new("a key that is not known") };
    let absent = match default {
        [] | [ScriptValue::Nothing] => AbsentField::Undefined,
        [ScriptValue::Text(text)] => match text.known() {
            Some(text) => AbsentField::Text(text.to_owned()),
            None => return Unclear::new("another text where one is missing"),
        },
        [ScriptValue::Object(fields)] if fields.is_empty() && path.is_empty() && key == "tool_input" => {
            AbsentField::Undefined
        }
        _ => return Unclear::new("another value where one is missing"),
    };
    Ok(part(path.to_vec(), key, absent))
}

/// What a function has returned.
fn returned_value(state: ScriptState) -> (ScriptValue, ScriptState) {
    match state.flow.clone() {
        ScriptFlow::Returned(value) => {
            let value = value.map_or(ScriptValue::Nothing, |value| *value);
            (value, ScriptState { flow: ScriptFlow::On, ..state })
        }
        _ => (ScriptValue::Nothing, state),
    }
}
