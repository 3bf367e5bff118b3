//! Reads an expression and checks it: names, types and costs, so that a rule that could never work is an error of its
//! file.

use super::{
    calls,
    expression::{Comparison, Expression, ExpressionKind, Literal, Loop, Operator},
    functions::{self, Form},
    loop_form::LoopForm,
    mistake::{RuleMistake, listed},
    scope::{Checked, RuleScope, wants},
    syntax,
    tree::{Tree, TreeNode},
    types::Type,
    variables,
};

/// The longest expression, in bytes.
const LONGEST_EXPRESSION: usize = 8 << 10;

/// How deep macros may be nested: each level multiplies the time.
const MOST_LOOPS: usize = 4;

/// Stands before the names of what files have.
const FACTS: &str = "facts";

/// Reads and checks one expression.
pub(super) fn compile(text: &str, scope: &RuleScope<'_>) -> Result<Expression, RuleMistake> {
    if text.len() > LONGEST_EXPRESSION {
        let message = format!("the expression is longer than {} KiB", LONGEST_EXPRESSION >> 10);
        return Err(RuleMistake::new(message, "divide it by `let`"));
    }
    Compiler { scope, locals: Vec::new() }.compile(&syntax::parse(text)?)
}

/// Checks the tree of an expression from its leaves up.
struct Compiler<'s> {
    scope: &'s RuleScope<'s>,
    /// The variables of macros around, from the outermost.
    locals: Vec<(String, Type)>,
}

impl Compiler<'_> {
    fn compile(&mut self, tree: &Tree) -> Result<Expression, RuleMistake> {
        let (kind, result) = match &tree.node {
            TreeNode::Literal(literal) => Ok(constant(literal)),
            TreeNode::Name(name) => self.name(name),
            TreeNode::Select(object, field) => self.select(object, field),
            TreeNode::Call(object, name, place, arguments) => {
                self.call(object.as_deref(), name, arguments).map_err(|mistake| mistake.at(*place))
            }
            TreeNode::Element(parts) => self.element(parts),
            TreeNode::Not(operand) => self.not(operand),
            TreeNode::Negate(operand) => self.negated(operand),
            TreeNode::And(parts) => Ok((ExpressionKind::And(self.booleans(parts)?), Type::Bool)),
            TreeNode::Or(parts) => Ok((ExpressionKind::Or(self.booleans(parts)?), Type::Bool)),
            TreeNode::Compare(comparison, parts) => self.compared(*comparison, parts),
            TreeNode::In(parts) => self.is_in(parts),
            TreeNode::Arithmetic(operator, parts) => self.calculated(*operator, parts),
            TreeNode::Conditional(parts) => self.conditional(parts),
            TreeNode::List(items) => self.list(items),
            TreeNode::Map(entries) => self.map(entries),
        }
        .map_err(|mistake| mistake.at(tree.place))?;
        Ok(Expression { kind, result, place: tree.place })
    }

    fn compile_all(&mut self, trees: &[Tree]) -> Result<Vec<Expression>, RuleMistake> {
        trees.iter().map(|tree| self.compile(tree)).collect()
    }

    fn pair(&mut self, [one, other]: &[Tree; 2]) -> Result<Box<[Expression; 2]>, RuleMistake> {
        Ok(Box::new([self.compile(one)?, self.compile(other)?]))
    }

    fn name(&self, name: &str) -> Checked {
        if let Some(depth) = self.locals.iter().rposition(|(local, _)| local == name) {
            return Ok((ExpressionKind::Local(depth), self.locals[depth].1.clone()));
        }
        if let Some(at) = self.scope.find(name) {
            return Ok((ExpressionKind::Let(at), self.scope.named[at].expression.result.clone()));
        }
        if let Some(found) = self.variable(name)? {
            return Ok(found);
        }
        if variables::is_group(name) {
            let message = format!("`{name}` cannot be used as a whole");
            let help = format!("use one of {}", listed(variables::in_group(name)));
            return Err(RuleMistake::new(message, help));
        }
        let own = self.locals.iter().map(|(local, _)| local.as_str()).chain(self.scope.names());
        Err(RuleMistake::unknown("name", name, own.chain(variables::first_names())))
    }

    /// A variable of the event, if there is one of this path, and an event of the rule has it.
    fn variable(&self, path: &str) -> Result<Option<(ExpressionKind, Type)>, RuleMistake> {
        let Some(variable) = variables::variable(path) else { return Ok(None) };
        if !variable.is_of(self.scope.kinds) {
            let kinds = variable.kinds.iter().map(|kind| kind.as_str());
            let message = format!("no event of this rule has `{path}`");
            let help = format!("it is {}; events that have it: {}", variable.about, listed(kinds));
            return Err(RuleMistake::new(message, help));
        }
        Ok(Some((ExpressionKind::Variable(variable.source), variable.result())))
    }

    /// The path of a selection, if it begins with the name of a group of variables that nothing hides.
    fn group_path(&self, object: &Tree, field: &str) -> Option<String> {
        let TreeNode::Name(group) = &object.node else { return None };
        (variables::is_group(group) && !self.is_own(group)).then(|| format!("{group}.{field}"))
    }

    /// Whether a name is one of the rule's own, which hides what is called the same.
    fn is_own(&self, name: &str) -> bool {
        self.locals.iter().any(|(local, _)| local == name) || self.scope.find(name).is_some()
    }

    fn select(&mut self, object: &Tree, field: &str) -> Checked {
        if let Some(path) = self.group_path(object, field) {
            let found = self.variable(&path)?;
            return found.ok_or_else(|| RuleMistake::unknown("name", &path, variables::in_group(&path)));
        }
        if matches!(&object.node, TreeNode::Name(name) if name == FACTS) && !self.is_own(FACTS) {
            let facts = self.scope.facts;
            if facts.is_empty() {
                return Err(RuleMistake::new(format!("unknown fact `{field}`"), "name a file under `facts`"));
            }
            let found = facts.iter().position(|fact| *fact.name == *field);
            let found = found.map(|at| (ExpressionKind::Fact(at), Type::Any));
            return found
                .ok_or_else(|| RuleMistake::unknown("fact", field, facts.iter().map(|fact| &*fact.name)));
        }
        let object = self.compile(object)?;
        let result = field_type(&object.result, field)?;
        Ok((ExpressionKind::Field(Box::new(object), field.into()), result))
    }

    /// `has(object.field)`
    fn has(&mut self, arguments: &[Tree]) -> Checked {
        let found = match arguments {
            [Tree { node: TreeNode::Select(object, field), .. }] => self.select(object, field)?,
            // `prompt` and its like are variables without a dot.
            [Tree { node: TreeNode::Name(name), .. }]
                if !self.is_own(name) && variables::variable(name).is_some() =>
            {
                self.name(name)?
            }
            _ => return Err(RuleMistake::new("`has` asks for a field", "write `has(object.field)`")),
        };
        Ok(match found {
            (ExpressionKind::Variable(source), _) => (ExpressionKind::HasVariable(source), Type::Bool),
            (ExpressionKind::Field(object, field), _) => {
                (ExpressionKind::HasField(object, field), Type::Bool)
            }
            // What a file has was there when the rule was loaded.
            _ => (ExpressionKind::Literal(Literal::Bool(true)), Type::Bool),
        })
    }

    fn list(&mut self, elements: &[Tree]) -> Checked {
        let items = self.compile_all(elements)?;
        let of = common(items.iter().map(|item| &item.result));
        Ok((ExpressionKind::List(items.into()), Type::list(of)))
    }

    fn map(&mut self, entries: &[(Tree, Tree)]) -> Checked {
        let mut compiled = Vec::new();
        for (key, value) in entries {
            let (key, value) = (self.compile(key)?, self.compile(value)?);
            if !key.result.fits(&Type::String) {
                let message = format!("the key of a map is {}", key.result);
                return Err(RuleMistake::new(message, "keys are strings").at(key.place));
            }
            compiled.push((key, value));
        }
        let of = common(compiled.iter().map(|(_, value)| &value.result));
        Ok((ExpressionKind::Map(compiled.into()), Type::map(of)))
    }

    fn call(&mut self, object: Option<&Tree>, name: &str, arguments: &[Tree]) -> Checked {
        let Some(object) = object else {
            return match name {
                "has" => self.has(arguments),
                _ => calls::call(name, Form::Call, self.compile_all(arguments)?, self.scope),
            };
        };
        if let Some(form) = LoopForm::of(name, arguments) {
            return self.looped(object, &form);
        }
        if let TreeNode::Name(group) = &object.node
            && functions::is_group(group)
            && !self.is_own(group)
        {
            let name = format!("{group}.{name}");
            return calls::call(&name, Form::Call, self.compile_all(arguments)?, self.scope);
        }
        let mut all = vec![self.compile(object)?];
        all.extend(self.compile_all(arguments)?);
        calls::call(name, Form::Method, all, self.scope)
    }

    fn booleans(&mut self, trees: &[Tree]) -> Result<Box<[Expression]>, RuleMistake> {
        let parts = self.compile_all(trees)?;
        parts.iter().try_for_each(|part| wants(part, &Type::Bool))?;
        Ok(parts.into())
    }

    fn conditional(&mut self, [condition, yes, no]: &[Tree; 3]) -> Checked {
        let condition = self.compile(condition)?;
        wants(&condition, &Type::Bool)?;
        let (yes, no) = (self.compile(yes)?, self.compile(no)?);
        let result = yes.result.joined(&no.result);
        Ok((ExpressionKind::Conditional(Box::new([condition, yes, no])), result))
    }

    fn not(&mut self, operand: &Tree) -> Checked {
        let operand = self.compile(operand)?;
        wants(&operand, &Type::Bool)?;
        Ok((ExpressionKind::Not(Box::new(operand)), Type::Bool))
    }

    fn negated(&mut self, operand: &Tree) -> Checked {
        let operand = self.compile(operand)?;
        if !operand.result.is_number() {
            let message = format!("`-` before {}", operand.result);
            return Err(RuleMistake::new(message, "it is for numbers").at(operand.place));
        }
        let result = operand.result.clone();
        Ok((ExpressionKind::Negate(Box::new(operand)), result))
    }

    fn element(&mut self, parts: &[Tree; 2]) -> Checked {
        let parts = self.pair(parts)?;
        let [list, at] = &*parts;
        let result = match (&list.result, &at.result) {
            (Type::Any, Type::Int | Type::String | Type::Any) => Type::Any,
            (Type::List(of), Type::Int | Type::Any) | (Type::Map(of), Type::String | Type::Any) => {
                (**of).clone()
            }
            (list, at) => {
                let message = format!("{list} has no element by {at}");
                return Err(RuleMistake::new(message, "lists are indexed by integers, maps by strings"));
            }
        };
        Ok((ExpressionKind::Element(parts), result))
    }

    fn is_in(&mut self, parts: &[Tree; 2]) -> Checked {
        let parts = self.pair(parts)?;
        let [item, of] = &*parts;
        let fits = match &of.result {
            Type::Any => true,
            Type::List(of) => item.result.is_comparable(of),
            Type::Map(_) => item.result.fits(&Type::String),
            _ => false,
        };
        if !fits {
            let message = format!("{} is never in {}", item.result, of.result);
            return Err(RuleMistake::new(message, "`in` looks for an element of a list or a key of a map"));
        }
        Ok((ExpressionKind::In(parts), Type::Bool))
    }

    fn compared(&mut self, comparison: Comparison, parts: &[Tree; 2]) -> Checked {
        let parts = self.pair(parts)?;
        let [left, right] = &*parts;
        let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        if !left.result.is_comparable(&right.result) {
            let what = if is_equality { "is never equal to" } else { "has no order with" };
            let message = format!("{} {what} {}", left.result, right.result);
            return Err(RuleMistake::new(message, "compare values of one type"));
        }
        let has_order = |side: &Expression| {
            matches!(side.result, Type::Any | Type::Bool | Type::Int | Type::Double | Type::String)
        };
        if !is_equality && !parts.iter().all(has_order) {
            let message = format!("{} has no order", left.result);
            return Err(RuleMistake::new(message, "`<` and its like are for numbers and strings"));
        }
        Ok((ExpressionKind::Compare(comparison, parts), Type::Bool))
    }

    fn calculated(&mut self, operator: Operator, parts: &[Tree; 2]) -> Checked {
        let parts = self.pair(parts)?;
        let [left, right] = &*parts;
        let joins = operator == Operator::Add
            && left.result.fits(&right.result)
            && matches!(
                (&left.result, &right.result),
                (Type::String | Type::List(_), _) | (_, Type::String | Type::List(_))
            );
        let result = match (&left.result, &right.result) {
            (one, other) if joins => one.joined(other),
            (Type::Int, Type::Int) => Type::Int,
            (Type::Any, other) | (other, Type::Any) if other.is_number() => Type::Any,
            (one, other) if one.is_number() && other.is_number() && operator != Operator::Remainder => {
                Type::Double
            }
            (one, other) => {
                let help = if matches!((one, other), (Type::String, _) | (_, Type::String)) {
                    "`string(…)` makes a string of a number"
                } else {
                    "calculate with numbers; `+` also joins strings and lists"
                };
                return Err(RuleMistake::new(format!("{one} and {other} do not go together"), help));
            }
        };
        let result =
            if joins && (left.result == Type::Any || right.result == Type::Any) { Type::Any } else { result };
        Ok((ExpressionKind::Arithmetic(operator, parts), result))
    }

    /// A macro, which goes through a list or the keys of a map.
    fn looped(&mut self, over: &Tree, form: &LoopForm<'_>) -> Checked {
        if self.locals.len() == MOST_LOOPS {
            let message = format!("macros are nested deeper than {MOST_LOOPS}");
            return Err(RuleMistake::new(message, "each level multiplies the time; use fewer"));
        }
        let over = self.compile(over)?;
        let item = match &over.result {
            Type::Any => Type::Any,
            Type::List(of) => (**of).clone(),
            Type::Map(_) => Type::String,
            other => {
                let message = format!("{other} has no elements");
                return Err(RuleMistake::new(message, "macros go through lists and maps").at(over.place));
            }
        };
        let depth = self.locals.len();
        self.locals.push((form.variable.to_owned(), item));
        let parts = self.loop_parts(form);
        self.locals.pop();
        let (filter, body) = parts?;
        let result = Type::list(body.result.clone());
        let looped = Box::new(Loop { over, depth, filter, body });
        Ok(match form.quantifier {
            Some(quantifier) => (ExpressionKind::Quantifier(quantifier, looped), Type::Bool),
            None => (ExpressionKind::Collect(looped), result),
        })
    }

    fn loop_parts(&mut self, form: &LoopForm<'_>) -> Result<(Option<Expression>, Expression), RuleMistake> {
        let filter = form.filter.map(|filter| self.compile(filter)).transpose()?;
        filter.iter().try_for_each(|filter| wants(filter, &Type::Bool))?;
        let body = self.compile(form.body)?;
        if form.quantifier.is_some() {
            wants(&body, &Type::Bool)?;
        }
        Ok((filter, body))
    }
}

/// The type that all of these have.
fn common<'t>(mut types: impl Iterator<Item = &'t Type>) -> Type {
    let first = types.next().cloned().unwrap_or(Type::Any);
    types.fold(first, |one, other| one.joined(other))
}

fn constant(literal: &Literal) -> (ExpressionKind, Type) {
    let result = match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Double(_) => Type::Double,
        Literal::Text(_) => Type::String,
    };
    (ExpressionKind::Literal(literal.clone()), result)
}

fn field_type(object: &Type, name: &str) -> Result<Type, RuleMistake> {
    match object {
        Type::Any => return Ok(Type::Any),
        Type::Map(of) => return Ok((**of).clone()),
        _ => {}
    }
    let fields = object.fields();
    if let Some(field) = fields.iter().find(|field| field.name == name) {
        return Ok((field.result)());
    }
    if fields.is_empty() {
        return Err(RuleMistake::new(format!("{object} has no field `{name}`"), "only maps have fields"));
    }
    Err(RuleMistake::unknown(&format!("field of {object}:"), name, fields.iter().map(|field| field.name)))
}
