//! The tokens of an expression.

use super::mistake::{RuleMistake, TextPlace};

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ExpressionToken {
    Int(i64),
    /// The digits of 2^63, which is an integer only behind a minus.
    Int63,
    Double(f64),
    Text(String),
    Name(String),
    /// The name of a field in backticks.
    QuotedName(String),
    /// An operator, a bracket, a dot or a comma.
    Symbol(&'static str),
    End,
}

/// Operators and brackets. Those of two characters come first.
const SYMBOLS: [&str; 24] = [
    "&&", "||", "==", "!=", "<=", ">=", "(", ")", "[", "]", "{", "}", ".", ",", ":", "?", "+", "-", "*", "/",
    "%", "!", "<", ">",
];

/// The tokens of a text, with their places, and the end of the text behind them.
pub(super) fn tokens(text: &str) -> Result<Vec<(ExpressionToken, TextPlace)>, RuleMistake> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c.is_ascii_whitespace() {
            at += 1;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else {
            let (token, length) = token(rest).map_err(|mistake| mistake.moved(at))?;
            found.push((token, TextPlace { start: at, end: at + length }));
            at += length;
        }
    }
    found.push((ExpressionToken::End, TextPlace { start: text.len(), end: text.len() }));
    Ok(found)
}

fn token(rest: &str) -> Result<(ExpressionToken, usize), RuleMistake> {
    let bytes = rest.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    match bytes[0] {
        b'0'..=b'9' => return number(rest),
        b'.' if is_digit(1) => return number(rest),
        b'`' => return quoted_name(rest),
        b'"' | b'\'' => return string(rest, 0, Escapes::Read),
        b'r' | b'R' if matches!(bytes.get(1), Some(b'"' | b'\'')) => return string(rest, 1, Escapes::Kept),
        b'b' | b'B' if matches!(bytes.get(1), Some(b'"' | b'\'')) => {
            let mistake = RuleMistake::new("bytes are not supported", "use a string: leave out the `b`");
            return Err(mistake.at(TextPlace { start: 0, end: 1 }));
        }
        _ => {}
    }
    let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    if length > 0 {
        return Ok((ExpressionToken::Name(rest[..length].to_owned()), length));
    }
    let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
    symbol.map(|symbol| (ExpressionToken::Symbol(symbol), symbol.len())).ok_or_else(|| unexpected(rest))
}

fn unexpected(rest: &str) -> RuleMistake {
    let c = rest.chars().next().unwrap_or_default();
    let help = match c {
        '=' => "compare with `==`",
        '&' | '|' => "write `&&` for and, `||` for or",
        '“' | '”' | '‘' | '’' => "write straight quotes: `'` or `\"`",
        _ => "expressions are written in CEL, such as `tool.name == 'Bash'`",
    };
    let place = TextPlace { start: 0, end: c.len_utf8() };
    RuleMistake::new(format!("unexpected character `{}`", c.escape_default()), help).at(place)
}

fn quoted_name(rest: &str) -> Result<(ExpressionToken, usize), RuleMistake> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_.-/ ".contains(c);
    match rest[1..].split_once('`') {
        Some((name, _)) if !name.is_empty() && name.chars().all(is_of_name) => {
            Ok((ExpressionToken::QuotedName(name.to_owned()), name.len() + 2))
        }
        _ => {
            let help = "write `object['name']` for a field of another name";
            Err(RuleMistake::new("no name of a field", help).at(TextPlace { start: 0, end: 1 }))
        }
    }
}

fn number(rest: &str) -> Result<(ExpressionToken, usize), RuleMistake> {
    let bytes = rest.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let hex = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X"));
    let (token, length) = if let Some(hex) = hex {
        let length = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
        (i64::from_str_radix(&hex[..length], 16).ok().map(ExpressionToken::Int), length + 2)
    } else {
        let mut length = digits(0);
        let is_fraction = bytes.get(length) == Some(&b'.') && digits(length + 1) > 0;
        if is_fraction {
            length += 1 + digits(length + 1);
        }
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let is_power = matches!(bytes.get(length), Some(b'e' | b'E'))
            && digits((length + 1 + sign).min(bytes.len())) > 0;
        if is_power {
            length += 1 + sign + digits(length + 1 + sign);
        }
        let written = &rest[..length];
        let token = if is_fraction || is_power {
            written.parse().ok().filter(|number: &f64| number.is_finite()).map(ExpressionToken::Double)
        } else if written.trim_start_matches('0') == "9223372036854775808" {
            Some(ExpressionToken::Int63)
        } else {
            written.parse().ok().map(ExpressionToken::Int)
        };
        (token, length)
    };
    let place = TextPlace { start: 0, end: length };
    if matches!(bytes.get(length), Some(b'u' | b'U')) {
        return Err(RuleMistake::new("unsigned numbers are not supported", "leave out the `u`").at(place));
    }
    if bytes.get(length).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
        return Err(RuleMistake::new("not a number", "put an operator or a blank behind it").at(place));
    }
    let token = token
        .ok_or_else(|| RuleMistake::new("the number is too large", "integers have 64 bits").at(place))?;
    Ok((token, length))
}

/// Whether a backslash in a string means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escapes {
    Read,
    Kept,
}

fn string(rest: &str, prefix: usize, escapes: Escapes) -> Result<(ExpressionToken, usize), RuleMistake> {
    let quoted = &rest[prefix..];
    let single = &quoted[..1];
    let triple = &single.repeat(3);
    let quote = if quoted.starts_with(triple) { triple } else { single };
    let mut text = String::new();
    let mut at = prefix + quote.len();
    loop {
        let inside = &rest[at..];
        if inside.starts_with(quote) {
            return Ok((ExpressionToken::Text(text), at + quote.len()));
        }
        match inside.chars().next() {
            Some('\\') if escapes == Escapes::Read => {
                let (c, length) = escape(inside).map_err(|mistake| mistake.moved(at))?;
                text.push(c);
                at += length;
            }
            // A quote behind a backslash does not end a raw string either.
            Some('\\') if inside[1..].starts_with(single) => {
                text.push_str(&inside[..2]);
                at += 2;
            }
            Some(c) if quote.len() == 3 || !matches!(c, '\n' | '\r') => {
                text.push(c);
                at += c.len_utf8();
            }
            Some(_) | None => {
                let mistake = RuleMistake::new("the string has no end", format!("put `{quote}` behind it"));
                return Err(mistake.at(TextPlace { start: 0, end: at }));
            }
        }
    }
}

/// The character of an escape, and the length of the escape.
fn escape(text: &str) -> Result<(char, usize), RuleMistake> {
    let kind = text[1..].chars().next();
    let simple = match kind {
        Some('a') => Some('\x07'),
        Some('b') => Some('\x08'),
        Some('f') => Some('\x0c'),
        Some('n') => Some('\n'),
        Some('r') => Some('\r'),
        Some('t') => Some('\t'),
        Some('v') => Some('\x0b'),
        Some(c @ ('\\' | '?' | '"' | '\'' | '`')) => Some(c),
        _ => None,
    };
    if let Some(c) = simple {
        return Ok((c, 2));
    }
    let (from, count, radix) = match kind {
        Some('x' | 'X') => (2, 2, 16),
        Some('u') => (2, 4, 16),
        Some('U') => (2, 8, 16),
        Some('0'..='3') => (1, 3, 8),
        _ => (1, 0, 10),
    };
    let digits = text.get(from..from + count).filter(|digits| !digits.is_empty());
    let code = digits.and_then(|digits| u32::from_str_radix(digits, radix).ok());
    code.and_then(char::from_u32).map(|c| (c, from + count)).ok_or_else(|| {
        let help = "a backslash itself is `\\\\`; a string that begins with `r'` has no escapes";
        RuleMistake::new("this escape is not known", help).at(TextPlace { start: 0, end: 2.min(text.len()) })
    })
}
