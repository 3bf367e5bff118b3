//! From the texts of policies to what judges events: checks that concern all of them together.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    sync::Arc,
};

use regorus::{Engine, Value};

use super::{
    builtins, document, engine,
    engine::ParsedPolicy,
    graph::{self, MOST_RULES, NamedRules, RuleGraph},
    mistake::{PolicyMistake, PolicyPlace},
    package::JudgingPackage,
    policy::{InputWriter, PolicySet},
    routing::Routing,
    source::{ENTRY, PolicySource, most_nested},
    syntax::{Mention, WrittenRule},
    verb::Verb,
};
use crate::model::Json;

/// The longest text of all policies of a hook, in bytes.
const LONGEST: usize = 256 << 10;

/// How deeply brackets and braces may nest. The parser takes twice as long for each level if there is a mistake in it.
const DEEPEST_BRACKETS: usize = 12;

/// What policies of Cupcake read of an event that only Cupcake adds to it.
const FOREIGN_INPUT: [&str; 4] = ["signals", "builtin_config", "is_symlink", "affected_parent_directories"];

/// What policies are compiled from, and how.
pub(crate) struct PolicyRules<'a> {
    pub(crate) policies: &'a [PolicySource],
    /// Documents that policies find under `data`.
    pub(crate) data: &'a [(Arc<str>, Json)],
    /// Whether a built-in that is given a wrong value fails the policy, and not only has no value.
    pub(crate) is_strict: bool,
    /// What the policies are given of an event.
    pub(crate) input: InputWriter,
    /// What to say of a name that no event has; nothing of one that some event has.
    pub(crate) unknown_event: fn(&str) -> Option<String>,
}

/// Policies that can judge events.
#[derive(Debug)]
pub(crate) struct CompiledPolicies {
    pub(crate) set: PolicySet,
    /// What looks wrong in them, though they work.
    pub(crate) doubts: Vec<PolicyMistake>,
    /// Where they change the input of a tool, or any part of the event.
    pub(crate) changes: PolicyChanges,
    /// The packages, with the names of their rules that say something.
    pub(crate) shown: String,
}

/// What policies change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PolicyChanges {
    /// The input of a tool, with `modify`.
    pub(crate) tool_input: bool,
    /// What they name, with `patch`.
    pub(crate) any: bool,
}

/// Checks and compiles policies.
///
/// Returns everything that is wrong with them.
pub(crate) fn compile(rules: PolicyRules<'_>) -> Result<CompiledPolicies, Vec<PolicyMistake>> {
    let length: usize = rules.policies.iter().map(|policy| policy.text.len()).sum();
    if length > LONGEST {
        let message = format!("the policies have {length} bytes; at most {LONGEST} are allowed");
        return Err(vec![PolicyMistake::new(
            message,
            "make several hooks of them, or move lists to a `.json` file",
        )]);
    }
    let nested: Vec<PolicyMistake> = rules.policies.iter().enumerate().filter_map(too_nested).collect();
    if !nested.is_empty() {
        return Err(nested);
    }
    let mut engine = Engine::new();
    engine.set_strict_builtin_errors(rules.is_strict);
    let mut mistakes = Vec::new();
    let mut documents = Vec::new();
    for (name, json) in rules.data {
        let read = document::read(json.as_str()).map_err(|error| error.to_string());
        let added = read.and_then(|value| {
            documents.push((&**name, value.clone()));
            engine.add_data(value).map_err(|error| error.to_string())
        });
        if let Err(error) = added {
            let message = format!("`{name}` cannot be added to `data`: {error}");
            mistakes.push(PolicyMistake::new(message, "write an object whose keys no other file has"));
        }
    }
    let parsed = rules.policies.iter().enumerate().filter_map(|(number, source)| {
        engine::add(&mut engine, source, number).map_err(|mistake| mistakes.push(mistake)).ok()
    });
    let parsed: Vec<ParsedPolicy> = parsed.collect();
    // What others need of a policy that cannot be read is not there.
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let unknown_event = rules.unknown_event;
    let mut checked = CheckedPolicies { parsed: &parsed, mistakes, doubts: Vec::new(), unknown_event };
    checked.check_documents(&documents);
    let graph = checked.graph();
    let packages = checked.packages(rules.policies);
    checked.mistakes.extend(graph::check(&graph).err());
    if checked.mistakes.is_empty()
        && let Err(mistake) = add_entry(&mut engine, &packages, rules.is_strict)
    {
        checked.mistakes.push(mistake);
    }
    let (mistakes, doubts) = (checked.mistakes, checked.doubts);
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let shown = shown(&packages);
    let has =
        |wanted: Verb| packages.iter().flat_map(|package| &package.verbs).any(|(_, verb)| *verb == wanted);
    let changes = PolicyChanges { tool_input: has(Verb::Modify), any: has(Verb::Patch) };
    let set = PolicySet::new(engine, packages, rules.input);
    Ok(CompiledPolicies { set, doubts, changes, shown })
}

/// What is wrong with a policy whose brackets nest too deeply.
fn too_nested((policy, source): (usize, &PolicySource)) -> Option<PolicyMistake> {
    let (depth, line) = most_nested(&source.text);
    let message =
        format!("brackets and braces nest {depth} levels deep; at most {DEEPEST_BRACKETS} are allowed");
    let mistake = PolicyMistake::new(message, "move what is inside to rules of its own");
    (depth > DEEPEST_BRACKETS).then(|| mistake.at(PolicyPlace { policy, line, column: 1, length: 1 }))
}

/// Policies while they are checked.
struct CheckedPolicies<'p> {
    parsed: &'p [ParsedPolicy],
    mistakes: Vec<PolicyMistake>,
    doubts: Vec<PolicyMistake>,
    unknown_event: fn(&str) -> Option<String>,
}

impl CheckedPolicies<'_> {
    /// All rules by their paths, with what they need.
    fn graph(&mut self) -> RuleGraph {
        let mut graph = RuleGraph::new();
        let rules: usize = self.parsed.iter().map(|policy| policy.rules.len()).sum();
        if rules > MOST_RULES {
            let message = format!("there are {rules} rules; at most {MOST_RULES} are allowed");
            self.mistakes.push(PolicyMistake::new(message, "make several hooks of them"));
            return graph;
        }
        let paths = self.parsed.iter().flat_map(|policy| policy.rules.iter().map(|rule| path(policy, rule)));
        let paths: BTreeSet<Vec<String>> = paths.collect();
        for policy in self.parsed {
            for rule in &policy.rules {
                let mut needs = Vec::new();
                for call in &rule.calls {
                    match resolved(policy, &call.path).filter(|target| paths.contains(target)) {
                        Some(target) => needs.push((target, call.clone())),
                        None => self.check_call(call),
                    }
                }
                let mentions = rule.mentions.iter().filter(|mention| mention.path[0] != "input");
                let targets =
                    mentions.filter_map(|mention| Some((resolved(policy, &mention.path)?, mention.clone())));
                needs.extend(targets);
                let entry = graph.entry(path(policy, rule));
                let known = entry.or_insert(NamedRules { depth: 0, needs: Vec::new() });
                known.depth = known.depth.max(rule.depth);
                known.needs.extend(needs);
            }
        }
        for (target, mention) in self.foreign_input() {
            let message =
                format!("hookyard gives policies no `input.{target}`: what depends on it does not apply");
            let help = "remove what needs it, or use another hook for that; see docs/rego.md";
            self.doubts.push(PolicyMistake::new(message, help).at(mention.place));
        }
        graph
    }

    /// What a file has in the place of a rule would count instead of the rule.
    fn check_documents(&mut self, documents: &[(&str, Value)]) {
        for policy in self.parsed {
            for rule in &policy.rules {
                let path = path(policy, rule);
                if let Some((name, _)) = documents.iter().find(|(_, value)| stands_at(value, &path)) {
                    let message = format!("`{name}` has a value where the rule `data.{}` is", path.join("."));
                    let help = "rename the key there, or the package";
                    self.mistakes.push(PolicyMistake::new(message, help).at(rule.place.clone()));
                }
            }
        }
    }

    fn check_call(&mut self, call: &Mention) {
        let name = call.path.join(".");
        if !builtins::is_known(&name) {
            let (message, help) = builtins::refusal(&name);
            self.mistakes.push(PolicyMistake::new(message, help).at(call.place.clone()));
        }
    }

    /// The first mention of each part of the input that hookyard does not give.
    fn foreign_input(&self) -> Vec<(&'static str, Mention)> {
        let mentions = self.parsed.iter().flat_map(|policy| &policy.rules).flat_map(|rule| &rule.mentions);
        let mentions: Vec<&Mention> = mentions.filter(|mention| mention.path[0] == "input").collect();
        let found = FOREIGN_INPUT.into_iter().filter_map(|name| {
            let is_it = |mention: &&&Mention| mention.path.get(1).is_some_and(|part| part == name);
            mentions.iter().find(is_it).map(|mention| (name, (*mention).clone()))
        });
        found.collect()
    }

    /// The packages with rules that say something.
    fn packages(&mut self, sources: &[PolicySource]) -> Vec<JudgingPackage> {
        let mut found: BTreeMap<&[String], JudgingPackage> = BTreeMap::new();
        for (number, policy) in self.parsed.iter().enumerate() {
            let mut verbs: Vec<(&'static str, Verb)> = Vec::new();
            for rule in &policy.rules {
                let name = rule.name.first().filter(|_| !rule.is_function);
                let Some(verb) = name.and_then(|name| Verb::named(name)) else { continue };
                self.check_verb(rule, verb.1);
                verbs.push(verb);
            }
            if verbs.is_empty() {
                continue;
            }
            let routing = self.routing(&sources[number], number, policy.package_line);
            let package = found
                .entry(policy.package.as_slice())
                .or_insert_with(|| JudgingPackage::new(&policy.package));
            package.add(verbs, routing);
        }
        if found.is_empty() && self.mistakes.is_empty() {
            let message = "no rule decides anything";
            let help = "write a rule `deny`, `ask`, `halt` or `allow`, or a `patch` or `context`";
            self.mistakes.push(PolicyMistake::new(message, help));
        }
        found.into_values().collect()
    }

    fn check_verb(&mut self, rule: &WrittenRule, verb: Verb) {
        if verb == Verb::Allow && rule.default == Some(serde_json::Value::Bool(false)) {
            let message = "what `allow` does not allow goes on all the same";
            let help = "write a rule `deny` for what has to be stopped; `allow` only spares a question";
            self.doubts.push(PolicyMistake::new(message, help).at(rule.place.clone()));
        }
    }

    fn routing(&mut self, source: &PolicySource, policy: usize, package_line: usize) -> Routing {
        let place = |line| PolicyPlace { policy, line, column: 1, length: 1 };
        let routing = match Routing::read(&source.text, package_line) {
            Ok(routing) => routing,
            Err((line, why)) => {
                let help = "correct it; until then the package is asked about every event of the hook";
                self.doubts.push(PolicyMistake::new(why, help).at(place(line)));
                return Routing::default();
            }
        };
        for name in routing.events() {
            if let Some(help) = (self.unknown_event)(name) {
                let message = format!("no event is called {name:?}, so the package is never asked for it");
                self.doubts.push(PolicyMistake::new(message, help).at(place(package_line)));
            }
        }
        routing
    }
}

/// Whether a document has a value at a path, or something in its way that has no keys.
fn stands_at(document: &Value, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else { return true };
    let Value::Object(fields) = document else { return true };
    fields.get(&Value::from(first.as_str())).is_some_and(|value| stands_at(value, rest))
}

/// The path of a rule, without `data`.
fn path(policy: &ParsedPolicy, rule: &WrittenRule) -> Vec<String> {
    policy.package.iter().chain(&rule.name).cloned().collect()
}

/// What a name in a policy may stand for, as a path without `data`: a part of `data`, an import, or a rule of its package.
fn resolved(policy: &ParsedPolicy, name: &[String]) -> Option<Vec<String>> {
    let (first, rest) = name.split_first()?;
    if first == "data" {
        return Some(rest.to_vec());
    }
    if let Some((_, imported)) = policy.imports.iter().find(|(known, _)| known == first) {
        let (root, path) = imported.split_first()?;
        return (root == "data").then(|| path.iter().chain(rest).cloned().collect());
    }
    Some(policy.package.iter().chain(name).cloned().collect())
}

/// Adds the rules that ask those of the policies, one for each package.
fn add_entry(engine: &mut Engine, packages: &[JudgingPackage], is_strict: bool) -> Result<(), PolicyMistake> {
    let mut text = format!("package {ENTRY}\nimport rego.v1\n");
    for (number, package) in packages.iter().enumerate() {
        for (name, _) in &package.verbs {
            let rule = package.rule(name);
            // Writing to a string cannot fail.
            _ = writeln!(text, "p{number} contains [\"{name}\", said] if {{ said := {rule} }}");
        }
    }
    let added = engine.add_policy(ENTRY.to_owned(), text);
    added.map_err(|error| PolicyMistake::new(error.to_string(), "rename the packages"))?;
    engine::prepare(engine, "p0", is_strict)
}

/// The packages with their rules, for people.
fn shown(packages: &[JudgingPackage]) -> String {
    let one = |package: &JudgingPackage| {
        let names: Vec<&str> = package.verbs.iter().map(|(name, _)| *name).collect();
        format!("{}: {}", package.name, names.join(", "))
    };
    let first: Vec<String> = packages.iter().take(3).map(one).collect();
    match packages.len().saturating_sub(3) {
        0 => first.join("; "),
        more => format!("{} … and {more} more packages", first.join("; ")),
    }
}
