//! The interpreter with the policies of a hook, from their texts.

use regorus::{Engine, PolicyLengthConfig};
use serde_json::Value;

use super::{
    bounded, budget,
    mistake::{PolicyMistake, PolicyPlace, read_error},
    source::{ENTRY, PolicySource},
    syntax::{WrittenRule, read_rule, static_path},
};

/// The longest line of a policy, in characters.
const LONGEST_LINE: u32 = 4_096;

/// A policy as it was read.
pub(super) struct ParsedPolicy {
    /// Its package, without `data`.
    pub(super) package: Vec<String>,
    /// The line of its package.
    pub(super) package_line: usize,
    /// What its imports stand for, by their names.
    pub(super) imports: Vec<(String, Vec<String>)>,
    pub(super) rules: Vec<WrittenRule>,
}

/// Adds a policy to the engine.
///
/// Returns what is wrong if it cannot be read.
pub(super) fn add(
    engine: &mut Engine,
    source: &PolicySource,
    number: usize,
) -> Result<ParsedPolicy, PolicyMistake> {
    let limits = PolicyLengthConfig::default();
    let max_col = LONGEST_LINE.try_into().unwrap_or(limits.max_col);
    engine.set_policy_length_config(PolicyLengthConfig { max_col, ..limits });
    let added = engine.add_policy(source.name.to_string(), source.text.to_string());
    if let Err(error) = added {
        // The form before OPA 1 has no `if` and `contains`.
        engine.set_rego_v0(true);
        let added = engine.add_policy(source.name.to_string(), source.text.to_string());
        engine.set_rego_v0(false);
        if added.is_err() {
            return Err(located(&error.to_string(), number, "correct the policy"));
        }
    }
    let Some(module) = engine.get_modules().last() else {
        return Err(PolicyMistake::new("the policy has no rules", "write one"));
    };
    let json = |value: Result<Value, serde_json::Error>| value.unwrap_or_default();
    let package = json(serde_json::to_value(&module.package));
    let imports: Vec<Value> =
        module.imports.iter().map(|import| json(serde_json::to_value(import))).collect();
    let rules = module.policy.iter().map(|rule| read_rule(&json(serde_json::to_value(&**rule)), number));
    Ok(ParsedPolicy {
        package: static_path(&package["refr"]),
        package_line: package["span"]["line"].as_u64().and_then(|line| line.try_into().ok()).unwrap_or(1),
        imports: imports.iter().filter_map(|import| imported(import, &source.text)).collect(),
        rules: rules.collect(),
    })
}

/// What an import stands for, by its name.
fn imported(import: &Value, text: &str) -> Option<(String, Vec<String>)> {
    let path = static_path(&import["refr"]);
    let range = |span: &Value| {
        let number = |key: &str| span[key].as_u64().and_then(|number| usize::try_from(number).ok());
        Some(number("start")?..number("end")?)
    };
    let alias = range(&import["as"]).and_then(|range| text.get(range)).map(str::to_owned);
    let name = alias.or_else(|| path.last().cloned())?;
    Some((name, path))
}

/// Has the engine analyse what was added.
///
/// Returns what is wrong if it cannot.
pub(super) fn prepare(engine: &mut Engine, entry: &str, is_strict: bool) -> Result<(), PolicyMistake> {
    if !budget::is_installed() || !bounded::bound(engine, is_strict) {
        let message = "the steps of policies cannot be counted";
        let help = "remove the other use of the crate `regorus` from this program";
        return Err(PolicyMistake::new(message, help));
    }
    engine.set_execution_timer_config(budget::limit());
    let rule = format!("data.{ENTRY}.{entry}");
    match engine.compile_with_entrypoint(&rule.as_str().into()) {
        Ok(_) => Ok(()),
        Err(error) => {
            let text = error.to_string();
            let help = "correct the policy";
            let (_, message) = read_error(&text);
            Err(PolicyMistake::new(message, help))
        }
    }
}

/// A mistake with the place that an error of the interpreter names.
pub(super) fn located(error: &str, policy: usize, help: &str) -> PolicyMistake {
    let (place, message) = read_error(error);
    let mistake = PolicyMistake::new(message, help);
    match place {
        Some((line, column)) => mistake.at(PolicyPlace { policy, line, column, length: 1 }),
        None => mistake,
    }
}
