//! The syntax of CEL: from a text to a tree, each part with its place.

use super::{
    expression::Literal,
    mistake::{RuleMistake, TextPlace},
    operation::BinaryOperation,
    tokens::{ExpressionToken, tokens},
    tree::{DEEPEST, Tree, TreeNode, too_deep, tree},
};

/// Words that CEL keeps for other languages.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

/// The tree of an expression.
pub(super) fn parse(text: &str) -> Result<Tree, RuleMistake> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0 };
    let tree = parser.expression()?;
    match parser.peek() {
        ExpressionToken::End => Ok(tree),
        _ => Err(parser.unexpected()),
    }
}

struct Parser {
    tokens: Vec<(ExpressionToken, TextPlace)>,
    next: usize,
    /// How many expressions are around the next token.
    depth: usize,
}

impl Parser {
    fn peek(&self) -> &ExpressionToken {
        &self.tokens[self.next].0
    }

    fn place(&self) -> TextPlace {
        self.tokens[self.next].1
    }

    /// Takes the next token. The last one, the end, stays.
    fn take(&mut self) -> (ExpressionToken, TextPlace) {
        let taken = self.tokens[self.next].clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        taken
    }

    /// Takes the next token if it is one of these, which it gives.
    fn taken(&mut self, symbols: &[&'static str]) -> Option<&'static str> {
        let ExpressionToken::Symbol(symbol) = *self.peek() else { return None };
        symbols.contains(&symbol).then(|| {
            self.take();
            symbol
        })
    }

    fn expect(&mut self, symbol: &'static str) -> Result<TextPlace, RuleMistake> {
        let place = self.place();
        match self.taken(&[symbol]) {
            Some(_) => Ok(place),
            None => Err(self.expected(symbol)),
        }
    }

    fn expected(&self, symbol: &str) -> RuleMistake {
        let found = match self.peek() {
            ExpressionToken::End => {
                return RuleMistake::new("the expression ends too early", format!("write `{symbol}`"))
                    .at(self.place());
            }
            found => shown(found),
        };
        RuleMistake::new(format!("unexpected {found}"), format!("write `{symbol}` before it"))
            .at(self.place())
    }

    fn unexpected(&self) -> RuleMistake {
        let help = "expressions are written in CEL, such as `tool.name == 'Bash'`";
        let message = match self.peek() {
            ExpressionToken::End => "the expression ends too early".to_owned(),
            found => format!("unexpected {}", shown(found)),
        };
        RuleMistake::new(message, help).at(self.place())
    }

    /// Goes one level down.
    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, RuleMistake>,
    ) -> Result<T, RuleMistake> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(too_deep(self.place()));
        }
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn expression(&mut self) -> Result<Tree, RuleMistake> {
        self.nested(Self::conditional)
    }

    fn conditional(&mut self) -> Result<Tree, RuleMistake> {
        let condition = self.operation(BinaryOperation::LOOSEST)?;
        if self.taken(&["?"]).is_none() {
            return Ok(condition);
        }
        let yes = self.nested(|parser| parser.operation(BinaryOperation::LOOSEST))?;
        self.expect(":")?;
        let no = self.expression()?;
        tree(condition.place.to(no.place), TreeNode::Conditional(Box::new([condition, yes, no])))
    }

    /// Operands with operators between them that bind at least as tight as this.
    fn operation(&mut self, least: u8) -> Result<Tree, RuleMistake> {
        let mut left = self.unary()?;
        while let Some(operation) = BinaryOperation::of(self.peek())
            && operation.tightness() >= least
        {
            self.take();
            let right = self.operation(operation.tightness() + 1)?;
            left = operation.with(left, right)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Tree, RuleMistake> {
        let start = self.place();
        let Some(symbol) = self.taken(&["!", "-"]) else { return self.member() };
        if symbol == "-"
            && let ExpressionToken::Int63 = self.peek()
        {
            let (_, place) = self.take();
            return tree(start.to(place), TreeNode::Literal(Literal::Int(i64::MIN)));
        }
        let operand = Box::new(self.nested(Self::unary)?);
        let place = start.to(operand.place);
        tree(place, if symbol == "!" { TreeNode::Not(operand) } else { TreeNode::Negate(operand) })
    }

    fn member(&mut self) -> Result<Tree, RuleMistake> {
        let mut object = self.primary()?;
        while let Some(symbol) = self.taken(&[".", "["]) {
            object = if symbol == "[" {
                let at = self.expression()?;
                let end = self.expect("]")?;
                tree(object.place.to(end), TreeNode::Element(Box::new([object, at])))?
            } else {
                let (name, place) = self.name_of_field()?;
                match self.arguments()? {
                    Some((arguments, end)) => {
                        let whole = object.place.to(end);
                        tree(whole, TreeNode::Call(Some(Box::new(object)), name, place, arguments))?
                    }
                    None => tree(object.place.to(place), TreeNode::Select(Box::new(object), name))?,
                }
            };
        }
        Ok(object)
    }

    fn name_of_field(&mut self) -> Result<(String, TextPlace), RuleMistake> {
        let name = match self.peek() {
            ExpressionToken::Name(name) | ExpressionToken::QuotedName(name) => name.clone(),
            _ => return Err(self.unexpected()),
        };
        let (_, place) = self.take();
        Ok((name, place))
    }

    /// The arguments in parentheses, if there are any, and where they end.
    fn arguments(&mut self) -> Result<Option<(Vec<Tree>, TextPlace)>, RuleMistake> {
        if self.taken(&["("]).is_none() {
            return Ok(None);
        }
        let arguments = self.list(")")?;
        Ok(Some((arguments, self.expect(")")?)))
    }

    /// Expressions with commas between them, before a bracket. A comma may be the last.
    fn list(&mut self, end: &'static str) -> Result<Vec<Tree>, RuleMistake> {
        let mut items = Vec::new();
        while *self.peek() != ExpressionToken::Symbol(end) {
            items.push(self.expression()?);
            if self.taken(&[","]).is_none() {
                break;
            }
        }
        Ok(items)
    }

    fn primary(&mut self) -> Result<Tree, RuleMistake> {
        let (token, place) = (self.peek().clone(), self.place());
        match token {
            ExpressionToken::Symbol("(") => {
                self.take();
                let inner = self.expression()?;
                let end = self.expect(")")?;
                Ok(Tree { place: place.to(end), ..inner })
            }
            ExpressionToken::Symbol("[") => {
                self.take();
                let items = self.list("]")?;
                let end = self.expect("]")?;
                tree(place.to(end), TreeNode::List(items))
            }
            ExpressionToken::Symbol("{") => self.map(),
            ExpressionToken::Name(name) => self.named(name),
            ExpressionToken::Int(number) => self.literal(Literal::Int(number)),
            ExpressionToken::Double(number) => self.literal(Literal::Double(number)),
            ExpressionToken::Text(text) => self.literal(Literal::Text(text.into())),
            ExpressionToken::Int63 => {
                Err(RuleMistake::new("the number is too large", "integers have 64 bits").at(place))
            }
            ExpressionToken::Symbol(_) | ExpressionToken::QuotedName(_) | ExpressionToken::End => {
                Err(self.unexpected())
            }
        }
    }

    fn literal(&mut self, literal: Literal) -> Result<Tree, RuleMistake> {
        let (_, place) = self.take();
        tree(place, TreeNode::Literal(literal))
    }

    fn named(&mut self, name: String) -> Result<Tree, RuleMistake> {
        match name.as_str() {
            "true" => return self.literal(Literal::Bool(true)),
            "false" => return self.literal(Literal::Bool(false)),
            "null" => return self.literal(Literal::Null),
            "in" => return Err(self.unexpected()),
            reserved if RESERVED.contains(&reserved) => {
                let message = format!("`{name}` is a reserved word of CEL");
                return Err(RuleMistake::new(message, "use another name").at(self.place()));
            }
            _ => {}
        }
        let (_, place) = self.take();
        match self.arguments()? {
            Some((arguments, end)) => tree(place.to(end), TreeNode::Call(None, name, place, arguments)),
            None => tree(place, TreeNode::Name(name)),
        }
    }

    fn map(&mut self) -> Result<Tree, RuleMistake> {
        let start = self.expect("{")?;
        let mut entries = Vec::new();
        while *self.peek() != ExpressionToken::Symbol("}") {
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((key, self.expression()?));
            if self.taken(&[","]).is_none() {
                break;
            }
        }
        let end = self.expect("}")?;
        tree(start.to(end), TreeNode::Map(entries))
    }
}

fn shown(token: &ExpressionToken) -> String {
    match token {
        ExpressionToken::Symbol(symbol) => format!("`{symbol}`"),
        ExpressionToken::Name(name) | ExpressionToken::QuotedName(name) => format!("`{name}`"),
        ExpressionToken::Text(_) => "string".to_owned(),
        ExpressionToken::Int(_) | ExpressionToken::Int63 | ExpressionToken::Double(_) => "number".to_owned(),
        ExpressionToken::End => "end".to_owned(),
    }
}
