//! What the rules of a policy are called, what they call and refer to, and how deeply they nest, from the interpreter's tree.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::mistake::PolicyPlace;

/// Expressions that the interpreter evaluates without going deeper.
const FLAT: [&str; 8] = ["Var", "RefDot", "RefBrack", "String", "RawString", "Number", "Bool", "Null"];

/// A name in a policy, and where it is.
#[derive(Debug, Clone)]
pub(super) struct Mention {
    /// Its parts, as far as they do not depend on the event.
    pub(super) path: Vec<String>,
    pub(super) place: PolicyPlace,
}

/// A rule as it is written.
#[derive(Debug)]
pub(super) struct WrittenRule {
    /// Its name, without that of its package.
    pub(super) name: Vec<String>,
    pub(super) place: PolicyPlace,
    pub(super) is_function: bool,
    /// The functions that it calls.
    pub(super) calls: Vec<Mention>,
    /// What else it refers to.
    pub(super) mentions: Vec<Mention>,
    /// How deeply its expressions nest.
    pub(super) depth: usize,
    /// Whether it is a default, and which.
    pub(super) default: Option<Value>,
}

/// Reads a rule.
pub(super) fn read_rule(rule: &Value, policy: usize) -> WrittenRule {
    let (kind, inner) = variant(rule).unwrap_or(("", rule));
    let refr = match kind {
        "Default" => &inner["refr"],
        _ => variant(&inner["head"]).map_or(&Value::Null, |(_, head)| &head["refr"]),
    };
    let arguments = match kind {
        "Default" => &inner["args"],
        _ => &inner["head"]["Func"]["args"],
    };
    let default = (kind == "Default").then(|| constant(&inner["value"]));
    let mut reader = RuleReader { policy, ..RuleReader::default() };
    reader.bound(inner);
    match kind {
        // The name of a default is that of the rule itself.
        "Default" => reader.visit(&inner["value"], 0),
        _ => reader.visit(inner, 0),
    }
    let local = reader.local;
    reader.mentions.retain(|mention| mention.path.first().is_some_and(|first| !local.contains(first)));
    WrittenRule {
        name: static_path(refr),
        place: place(inner, policy),
        is_function: arguments.as_array().is_some_and(|arguments| !arguments.is_empty()),
        calls: reader.calls,
        mentions: reader.mentions,
        depth: reader.deepest,
        default,
    }
}

/// The parts of a name, up to the first that depends on the event.
pub(super) fn static_path(refr: &Value) -> Vec<String> {
    path_of(refr).map_or_else(Vec::new, |(path, _)| path)
}

/// The parts of a name, and whether they are all of it.
fn path_of(refr: &Value) -> Option<(Vec<String>, bool)> {
    let (kind, inner) = variant(refr)?;
    match kind {
        "Var" => Some((vec![inner["value"].as_str()?.to_owned()], true)),
        "RefDot" => {
            let (mut path, is_whole) = path_of(&inner["refr"])?;
            if is_whole {
                path.push(inner["field"][1].as_str()?.to_owned());
            }
            Some((path, is_whole))
        }
        "RefBrack" => {
            let (mut path, is_whole) = path_of(&inner["refr"])?;
            let index = variant(&inner["index"]).filter(|(kind, _)| matches!(*kind, "String" | "RawString"));
            match index.and_then(|(_, text)| text["value"].as_str()) {
                Some(text) if is_whole => path.push(text.to_owned()),
                _ => return Some((path, false)),
            }
            Some((path, is_whole))
        }
        _ => None,
    }
}

/// Where a part of the tree is.
pub(super) fn place(part: &Value, policy: usize) -> PolicyPlace {
    let number = |key: &str| {
        let number = part["span"][key].as_u64();
        number.and_then(|number| usize::try_from(number).ok()).unwrap_or(1)
    };
    let length = number("end").saturating_sub(number("start")).max(1);
    PolicyPlace { policy, line: number("line"), column: number("col"), length }
}

/// The name and the content of a part that is one of several kinds.
fn variant(part: &Value) -> Option<(&str, &Value)> {
    let object = part.as_object().filter(|object| object.len() == 1)?;
    object.iter().next().map(|(kind, inner)| (kind.as_str(), inner)).filter(|(_, inner)| inner.is_object())
}

/// The value of a constant.
fn constant(expression: &Value) -> Value {
    variant(expression).map_or(Value::Null, |(_, inner)| inner["value"].clone())
}

#[derive(Default)]
struct RuleReader {
    policy: usize,
    calls: Vec<Mention>,
    mentions: Vec<Mention>,
    /// The names of its own variables.
    local: BTreeSet<String>,
    deepest: usize,
}

impl RuleReader {
    /// Collects the variables that a part binds.
    fn bound(&mut self, part: &Value) {
        match part {
            Value::Array(parts) => parts.iter().for_each(|part| self.bound(part)),
            Value::Object(object) => {
                if let Some(assigned) = object.get("AssignExpr").filter(|assign| assign["op"] == "ColEq") {
                    self.variables(&assigned["lhs"]);
                }
                if let Some(some) = object.get("SomeIn") {
                    self.variables(&some["key"]);
                    self.variables(&some["value"]);
                }
                if let Some(arguments) = object.get("Func") {
                    self.variables(&arguments["args"]);
                }
                object.values().for_each(|part| self.bound(part));
            }
            _ => {}
        }
    }

    fn variables(&mut self, part: &Value) {
        match part {
            Value::Array(parts) => parts.iter().for_each(|part| self.variables(part)),
            Value::Object(object) => {
                let name = object.get("Var").and_then(|variable| variable["value"].as_str());
                self.local.extend(name.map(str::to_owned));
                object.values().for_each(|part| self.variables(part));
            }
            _ => {}
        }
    }

    fn visit(&mut self, part: &Value, depth: usize) {
        match part {
            Value::Array(parts) => parts.iter().for_each(|part| self.visit(part, depth)),
            Value::Object(object) => self.visit_object(part, object, depth),
            _ => {}
        }
    }

    fn visit_object(&mut self, part: &Value, object: &Map<String, Value>, depth: usize) {
        let Some((kind, inner)) = variant(part) else {
            // The head of a rule mentions the rule itself.
            let others = object.iter().filter(|(key, _)| *key != "head");
            others.for_each(|(_, part)| self.visit(part, depth));
            if let Some((_, head)) = object.get("head").and_then(variant) {
                for key in ["key", "assign"] {
                    self.visit(&head[key], depth);
                }
                self.indexes(&head["refr"], depth);
            }
            return;
        };
        let is_flat = FLAT.contains(&kind) || inner.get("eidx").is_none();
        let depth = if is_flat { depth } else { depth + 1 };
        self.deepest = self.deepest.max(depth);
        match kind {
            "Call" => {
                let place = place(inner, self.policy);
                self.calls.push(Mention { path: static_path(&inner["fcn"]), place });
                self.visit(&inner["params"], depth);
            }
            "Var" | "RefDot" | "RefBrack" => {
                let place = place(inner, self.policy);
                self.mentions.push(Mention { path: static_path(part), place });
                self.indexes(part, depth);
            }
            _ => self.visit(inner, depth),
        }
    }

    /// Visits what stands in the brackets of a name, and what a name is one of.
    fn indexes(&mut self, refr: &Value, depth: usize) {
        match variant(refr) {
            Some(("RefDot", inner)) => self.indexes(&inner["refr"], depth),
            Some(("RefBrack", inner)) => {
                self.indexes(&inner["refr"], depth);
                self.visit(&inner["index"], depth + 1);
            }
            Some(("Var", _)) | None => {}
            Some(_) => self.visit(refr, depth),
        }
    }
}
