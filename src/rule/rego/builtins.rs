//! The built-ins that policies may call. None reads or writes anything, and none waits.

use regorus::Value;

use super::{budget, size::made};

/// The longest list of numbers that a policy makes.
const LONGEST_RANGE: i64 = 65_536;

/// Every built-in that a policy may call.
pub(super) const BUILTINS: [&str; 99] = [
    "abs",
    "array.concat",
    "array.reverse",
    "array.slice",
    "base64.decode",
    "base64.encode",
    "base64.is_valid",
    "base64url.decode",
    "base64url.encode",
    "base64url.encode_no_pad",
    "bits.and",
    "bits.lsh",
    "bits.negate",
    "bits.or",
    "bits.rsh",
    "bits.xor",
    "ceil",
    "concat",
    "contains",
    "count",
    "endswith",
    "floor",
    "format_int",
    "glob.match",
    "glob.quote_meta",
    "graph.reachable",
    "hex.decode",
    "hex.encode",
    "indexof",
    "indexof_n",
    "intersection",
    "is_array",
    "is_boolean",
    "is_null",
    "is_number",
    "is_object",
    "is_set",
    "is_string",
    "json.filter",
    "json.is_valid",
    "json.marshal",
    "json.marshal_with_options",
    "json.patch",
    "json.remove",
    "json.unmarshal",
    "lower",
    "max",
    "min",
    "numbers.range",
    "numbers.range_step",
    "object.filter",
    "object.get",
    "object.keys",
    "object.remove",
    "object.subset",
    "object.union",
    "object.union_n",
    "print",
    "product",
    "regex.find_all_string_submatch_n",
    "regex.find_n",
    "regex.is_valid",
    "regex.match",
    "regex.replace",
    "regex.split",
    "regex.template_match",
    "replace",
    "round",
    "semver.compare",
    "semver.is_valid",
    "sort",
    "split",
    "sprintf",
    "startswith",
    "strings.any_prefix_match",
    "strings.any_suffix_match",
    "strings.count",
    "strings.replace_n",
    "strings.reverse",
    "substring",
    "sum",
    "to_number",
    "trace",
    "trim",
    "trim_left",
    "trim_prefix",
    "trim_right",
    "trim_space",
    "trim_suffix",
    "type_name",
    "union",
    "units.parse",
    "units.parse_bytes",
    "upper",
    "urlquery.decode",
    "urlquery.decode_object",
    "urlquery.encode",
    "urlquery.encode_object",
    "walk",
];

/// Built-ins of OPA that policies may not call, by how they begin, and why.
const REFUSED: [(&str, &str); 14] = [
    ("graph.reachable_paths", "a small graph may have more paths than can be counted"),
    ("http.send", "it opens connections"),
    ("net.lookup_ip_addr", "it opens connections"),
    ("net.", "this build has no built-ins for networks"),
    ("opa.runtime", "it reads the environment"),
    ("rand.", "the same event has to be judged the same"),
    ("uuid.", "the same event has to be judged the same"),
    ("time.", "the same event has to be judged the same"),
    ("io.jwt.", "this build has no built-ins for tokens"),
    ("crypto.", "this build has no built-ins for cryptography"),
    ("graphql.", "this build has no built-ins for GraphQL"),
    ("providers.", "it signs requests"),
    ("rego.", "a policy cannot load another one"),
    ("yaml.", "this build reads no YAML in policies"),
];

/// Whether policies may call a built-in of this name.
pub(super) fn is_known(name: &str) -> bool {
    BUILTINS.binary_search(&name).is_ok()
}

/// What is wrong with a call of a function that nobody defines, and what to do.
pub(super) fn refusal(name: &str) -> (String, String) {
    match REFUSED.iter().find(|(beginning, _)| name.starts_with(beginning)) {
        Some((_, why)) => (
            format!("`{name}` is not available: {why}"),
            "remove it; a policy reads nothing but the event and its own files".to_owned(),
        ),
        None => (
            format!("there is no function `{name}`"),
            "correct the name, or add the policy that defines it to `file`".to_owned(),
        ),
    }
}

/// The built-ins that make a list of numbers, with how many they are given.
pub(super) const RANGES: [(&str, u8); 2] = [("numbers.range", 2), ("numbers.range_step", 3)];

/// The whole numbers from the first one to the second, in steps of the third. One that is longer than any policy needs takes
/// all steps.
pub(super) fn range(args: &[Value]) -> Value {
    let number = |at: usize| args.get(at).and_then(|value| value.as_i64().ok());
    let (Some(from), Some(to)) = (number(0), number(1)) else { return Value::Undefined };
    let step = if args.len() > 2 { number(2).unwrap_or_default() } else { 1 };
    if step <= 0 {
        return Value::Undefined;
    }
    let distance = i128::from(to) - i128::from(from);
    let count = distance.abs() / i128::from(step) + 1;
    if count > i128::from(LONGEST_RANGE) {
        budget::exhaust();
        return Value::Undefined;
    }
    let direction = if distance < 0 { -step } else { step };
    let numbers = (0..i64::try_from(count).unwrap_or_default()).map(|at| Value::from(from + at * direction));
    let numbers = Value::from(numbers.collect::<Vec<_>>());
    budget::spend_on_text(made(&numbers));
    numbers
}
