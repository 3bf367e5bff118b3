//! The types of plain YAML scalars, as `serde_yaml` has them: those of YAML 1.2, so `no` is text and `0o17` a number.

use super::node::NodeValue;

/// The bases of integers, by their prefixes.
const RADIXES: [(&str, u32); 3] = [("0x", 16), ("0o", 8), ("0b", 2)];

/// The value of a scalar without quotes.
pub(super) fn plain(text: &str) -> NodeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return NodeValue::Null,
        "true" | "True" | "TRUE" => return NodeValue::Bool(true),
        "false" | "False" | "FALSE" => return NodeValue::Bool(false),
        _ => {}
    }
    integer(text).or_else(|| float(text)).unwrap_or_else(|| NodeValue::Text(text.into()))
}

#[expect(clippy::cast_precision_loss, reason = "no key takes a number of that size")]
fn integer(text: &str) -> Option<NodeValue> {
    if let Some(number) = unsigned(text) {
        return Some(i64::try_from(number).map_or(NodeValue::Float(number as f64), NodeValue::Integer));
    }
    let number = negative(text)?;
    Some(i64::try_from(number).map_or(NodeValue::Float(number as f64), NodeValue::Integer))
}

fn unsigned(text: &str) -> Option<u128> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    for (prefix, radix) in RADIXES {
        let Some(rest) = digits.strip_prefix(prefix) else { continue };
        // Rust would take a sign after the prefix.
        return if rest.starts_with(['+', '-']) { None } else { u128::from_str_radix(rest, radix).ok() };
    }
    let is_signed_again = digits.starts_with(['+', '-']);
    if is_signed_again || has_leading_zero(text) { None } else { digits.parse().ok() }
}

fn negative(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-')?;
    for (prefix, radix) in RADIXES {
        let Some(rest) = digits.strip_prefix(prefix) else { continue };
        return i128::from_str_radix(&format!("-{rest}"), radix).ok();
    }
    if has_leading_zero(text) { None } else { text.parse().ok() }
}

fn float(text: &str) -> Option<NodeValue> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let number = match unsigned {
        _ if has_leading_zero(text) => return None,
        _ if text.starts_with('+') && unsigned.starts_with(['+', '-']) => return None,
        ".inf" | ".Inf" | ".INF" => f64::INFINITY,
        "-.inf" | "-.Inf" | "-.INF" => f64::NEG_INFINITY,
        ".nan" | ".NaN" | ".NAN" if !text.starts_with('+') => f64::NAN,
        // Rust knows words such as `inf` and `nan`, and takes what is too large for infinity.
        digits => digits.parse().ok().filter(|number: &f64| number.is_finite())?,
    };
    Some(NodeValue::Float(number))
}

/// Digits with a zero before them, such as `007`, are text.
fn has_leading_zero(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
}
