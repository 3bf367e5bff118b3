//! Rule handlers of hook files: one rule, or a list of them.

use std::{iter, path::Path, sync::Arc};

use super::{
    super::{Mapping, Mistake, Value, suggest::did_you_mean},
    dialect,
    hook_context::HookContext,
    lookup::{HOOK_KEYS, ReferenceLookup},
};
use crate::{
    model::{Capability, FactFile, Json, RuleHandler, Target},
    rule::{RuleDecision, RuleHelp, RuleMistake, RuleSet, RuleText},
};

/// The keys of a rule.
const RULE_KEYS: [&str; 9] = ["let", "halt", "deny", "ask", "allow", "reason", "context", "message", "patch"];

/// The longest text of a rule in lists, in bytes.
const LONGEST_SHOWN: usize = 200;

/// The most files of one hook.
const MOST_FACTS: usize = 32;

/// A rule handler as its file has it.
pub(super) struct RawRuleHandler<'d> {
    handler: Mapping<'d>,
    /// The list of rules; `None` if the handler is one itself.
    rules: Option<Value<'d>>,
}

impl<'d> RawRuleHandler<'d> {
    pub(super) fn read(handler: &Mapping<'d>) -> Self {
        let known: Vec<&str> = ["type", "facts", "rules"].into_iter().chain(RULE_KEYS).collect();
        handler.allow_only_with(&known, |key| match key {
            "timeout_seconds" => {
                Some("remove it: rules end by themselves, after a number of steps".to_owned())
            }
            "max_concurrency" => Some("remove it: rules wait for nothing".to_owned()),
            key if HOOK_KEYS.contains(&key) => Some(format!("write `{key}` beside `handler`, not inside it")),
            _ => None,
        });
        Self { handler: handler.clone(), rules: handler.get("rules") }
    }

    /// The first condition that stops an event.
    pub(super) fn condition(&self) -> Option<Value<'d>> {
        let items = self.rules.as_ref().filter(|rules| rules.is_list()).and_then(Value::list);
        let rules = items.into_iter().flatten().filter_map(|rule| rule.as_mapping());
        let stops = |rule: Mapping<'d>| ["halt", "deny", "ask"].into_iter().find_map(|key| rule.get(key));
        iter::once(self.handler.clone()).chain(rules).find_map(stops)
    }

    /// The rules, checked against the events and the capabilities of their hook.
    pub(super) fn prepare(
        &self,
        hook: HookContext<'_>,
        resolver: &dyn ReferenceLookup,
    ) -> Option<RuleHandler> {
        let HookContext { events, matcher, capabilities, fails_open } = hook;
        // Without events each name would be a mistake.
        if events.is_empty() {
            return None;
        }
        let set = RuleSet::new(events.to_vec()).matched(matcher, dialect::matched).failing_open(fails_open);
        let (named, files, definition) = (Vec::new(), Vec::new(), String::new());
        let mut checked = CheckedRules { set, capabilities, are_right: true, named, files, definition };
        checked.facts(&self.handler, resolver);
        let shown = match &self.rules {
            Some(rules) => checked.list(&self.handler, rules),
            None => checked.only(&self.handler),
        };
        if checked.are_right
            && let Err(mistake) = checked.set.check_cost()
        {
            report(&self.handler, mistake);
            return None;
        }
        let shown = shown.filter(|_| checked.are_right)?;
        for at in checked.set.unused() {
            let Some(value) = checked.named.get(at) else { continue };
            value.warn_key("rule", format!("nothing uses `{}`", value.name()), "use it, or remove it");
        }
        Some(RuleHandler {
            shown: shown.into(),
            program: Arc::new(checked.set),
            definition: checked.definition.into(),
            files: checked.files.into(),
        })
    }
}

/// Rules while they are read.
struct CheckedRules<'d, 'h> {
    set: RuleSet,
    capabilities: &'h [Capability],
    are_right: bool,
    /// The named expressions, as they are numbered.
    named: Vec<Value<'d>>,
    /// The files that were read.
    files: Vec<FactFile>,
    /// The keys and expressions.
    definition: String,
}

impl<'d> CheckedRules<'d, '_> {
    /// The files under `facts`.
    fn facts(&mut self, handler: &Mapping<'d>, resolver: &dyn ReferenceLookup) {
        let Some(files) = handler.get("facts") else { return };
        let Some(entries) = files.mapping() else {
            self.are_right = false;
            return;
        };
        if entries.values().count() > MOST_FACTS {
            files.error("rule", format!("more than {MOST_FACTS} files"), "put several into one JSON file");
            self.are_right = false;
            return;
        }
        for value in entries.values() {
            self.fact(&value, resolver);
        }
    }

    fn fact(&mut self, value: &Value<'d>, resolver: &dyn ReferenceLookup) {
        let json = self.read_fact(value, resolver);
        self.are_right &= json.is_some();
        // Expressions that use the name are right, whatever is wrong with the file.
        let Some(json) = json.or_else(|| Json::of(&()).ok()) else { return };
        if let Err(mistake) = self.set.fact(value.name(), json) {
            value.error_at(value.key_span(), "rule", mistake.message, help(&mistake.help));
            self.are_right = false;
        }
    }

    fn read_fact(&mut self, value: &Value<'d>, resolver: &dyn ReferenceLookup) -> Option<Json> {
        let path = value.text()?;
        let refuse = |message: String, help: &str| {
            value.error("rule", message, help);
            None
        };
        let text = match resolver.text_file(path) {
            Ok(text) => text,
            Err(why) => {
                return refuse(format!("`facts`: {why}"), "name a UTF-8 text file inside the workspace");
            }
        };
        let json = match fact_json(path, &text) {
            Ok(json) => json,
            Err(why) => return refuse(format!("`facts`: `{path}` is no JSON: {why}"), "correct the file"),
        };
        self.define(value.name(), path);
        self.files.push(FactFile { path: path.into(), text: text.into() });
        Some(json)
    }

    /// The rule that a handler is. Returns what lists show of it.
    fn only(&mut self, handler: &Mapping<'d>) -> Option<String> {
        self.named(handler);
        self.begin(handler, None);
        self.rule(handler)
    }

    /// The rules of a list. Returns what lists show of them.
    fn list(&mut self, handler: &Mapping<'d>, rules: &Value<'d>) -> Option<String> {
        for key in RULE_KEYS.iter().filter(|key| **key != "let") {
            if let Some(value) = handler.get(key) {
                let message = format!("`{key}` beside `rules`");
                value.error_at(value.key_span(), "rule", message, "write it in one of the rules");
                self.are_right = false;
            }
        }
        self.named(handler);
        let items = rules.list()?;
        if items.is_empty() {
            rules.error("rule", "`rules` is empty", "write at least one rule, or set `enabled: false`");
            return None;
        }
        let mut shown = None;
        for item in &items {
            let rule = item.mapping()?;
            let known: Vec<&str> = iter::once("name").chain(RULE_KEYS).collect();
            rule.allow_only(&known);
            let label = rule.get("name").and_then(|name| name.text());
            self.begin(&rule, label);
            self.named(&rule);
            // Each is checked, whatever is wrong with those before it.
            let own = self.rule(&rule);
            shown = shown.or(own);
        }
        let more = items.len() - 1;
        let first = shown?;
        Some(match more {
            0 => first,
            1 => format!("{first} … and 1 more rule"),
            more => format!("{first} … and {more} more rules"),
        })
    }

    fn begin(&mut self, rule: &Mapping<'_>, label: Option<&str>) {
        self.define("rule", label.unwrap_or_default());
        if let Err(mistake) = self.set.begin(label) {
            report(rule, mistake);
            self.are_right = false;
        }
    }

    /// Adds to what tells these rules from others.
    fn define(&mut self, key: &str, text: &str) {
        // No key and no expression that is accepted has this character.
        for part in [key, "\0", text, "\0"] {
            self.definition.push_str(part);
        }
    }

    /// The expressions under `let`.
    fn named(&mut self, rule: &Mapping<'d>) {
        let Some(named) = rule.get("let") else { return };
        let Some(named) = named.mapping() else {
            self.are_right = false;
            return;
        };
        for value in named.values() {
            if self.add(&value, |set, text| set.name(value.name(), text)) {
                self.named.push(value);
            }
        }
    }

    /// The other keys of a rule. Returns what lists show of it.
    fn rule(&mut self, rule: &Mapping<'d>) -> Option<String> {
        let mut shown = None;
        for decision in RuleDecision::ALL {
            if let Some(value) = rule.get(decision.as_str()) {
                self.add(&value, |set, text| set.decide(decision, text));
                shown = shown.or_else(|| Some(one_line(decision.as_str(), value.as_text()?)));
            }
        }
        for which in RuleText::ALL {
            if let Some(value) = rule.get(which.as_str()) {
                self.add(&value, |set, text| set.say(which, text));
                let text = value.as_text().filter(|_| which != RuleText::Reason);
                shown = shown.or_else(|| Some(one_line(which.as_str(), text?)));
            }
        }
        if let Some(patches) = rule.get("patch") {
            let entries = patches.mapping();
            self.are_right &= entries.is_some();
            for value in entries.iter().flat_map(Mapping::values) {
                self.patch(&value);
                shown = shown.or_else(|| Some(one_line("patch", value.as_text()?)));
            }
        }
        if shown.is_none() {
            let mistake = Mistake::error("rule", rule.span(), "the rule does nothing");
            let help = "write a condition under `deny`, `ask`, `halt` or `allow`, or a `patch`, `context` or `message`";
            rule.document().report(mistake.help(help));
            self.are_right = false;
        }
        shown
    }

    fn patch(&mut self, value: &Value<'_>) {
        let Some(target) = Target::from_name(value.name()) else {
            let known = Target::ALL.map(Target::as_str);
            let message = format!("`{}` is no part of an event", value.name());
            value.error_at(value.key_span(), "rule", message, did_you_mean(value.name(), &known));
            self.are_right = false;
            return;
        };
        if !self.capabilities.contains(&target.capability()) {
            let message = format!("the change of `{target}` would be ignored");
            let help = format!("add the capability `{}`", target.capability().as_str());
            value.error_at(value.key_span(), "rule", message, help);
            self.are_right = false;
        }
        self.add(value, |set, text| set.patch(target, text));
    }

    /// Adds an expression, and reports what is wrong with it. Returns whether it was added.
    fn add(
        &mut self,
        value: &Value<'_>,
        add: impl FnOnce(&mut RuleSet, &str) -> Result<(), RuleMistake>,
    ) -> bool {
        let Some(text) = value.text() else {
            self.are_right = false;
            return false;
        };
        let span = |mistake: &RuleMistake| {
            mistake.place.map_or(value.span(), |place| value.range_span(place.start..place.end))
        };
        self.define(value.name(), text);
        let added = add(&mut self.set, text);
        for doubt in self.set.take_doubts() {
            let message = format!("`{}`: {}", value.name(), doubt.message);
            value.warn_at(span(&doubt), "rule", message, help(&doubt.help));
        }
        if let Err(mistake) = &added {
            self.are_right = false;
            let message = format!("`{}`: {}", value.name(), mistake.message);
            value.error_at(span(mistake), "rule", message, help(&mistake.help));
        }
        added.is_ok()
    }
}

/// What a file has, as JSON: a list of its lines without comments, or what it is if its name says that it is JSON.
fn fact_json(path: &str, text: &str) -> Result<Json, String> {
    let is_json = Path::new(path).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    let json = if is_json {
        Json::parse(text)
    } else {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Json::parse(&serde_json::to_string(&lines.collect::<Vec<_>>()).map_err(|e| e.to_string())?)
    };
    json.map_err(|error| error.to_string())
}

fn report(rule: &Mapping<'_>, mistake: RuleMistake) {
    let help = help(&mistake.help);
    rule.document().report(Mistake::error("rule", rule.span(), mistake.message).help(help));
}

fn help(help: &RuleHelp) -> String {
    match help {
        RuleHelp::Text(text) => text.clone(),
        RuleHelp::Known(name, known) => {
            did_you_mean(name, &known.iter().map(String::as_str).collect::<Vec<_>>())
        }
    }
}

/// An expression on one line, with its key.
fn one_line(key: &str, text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = format!("{key} {}", words.join(" "));
    match line.char_indices().find(|(at, _)| *at >= LONGEST_SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
