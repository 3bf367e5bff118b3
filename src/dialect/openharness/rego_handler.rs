//! Rego handlers of hook files: policies in files or in place, and how they are asked.

use std::sync::Arc;

use super::{
    super::{Mapping, Mistake, Value, suggest::did_you_mean},
    lookup::{HOOK_KEYS, ReferenceLookup},
    rego_program,
    rego_sources::RegoSources,
};
use crate::model::{Capability, DialectName, FactFile, Json, RuleHandler};

/// The most files of one hook.
const MOST_FILES: usize = 32;

/// A Rego handler as its file has it.
pub(super) struct RawRegoHandler<'d> {
    handler: Mapping<'d>,
    file: Option<Value<'d>>,
    inline: Option<Value<'d>>,
    input: Option<Value<'d>>,
    strict: Option<Value<'d>>,
}

impl<'d> RawRegoHandler<'d> {
    pub(super) fn read(handler: &Mapping<'d>) -> Self {
        let known = ["type", "file", "inline", "input", "strict_builtin_errors"];
        handler.allow_only_with(&known, |key| match key {
            "timeout_seconds" => {
                Some("remove it: policies end by themselves, after a number of steps".to_owned())
            }
            "max_concurrency" => Some("remove it: policies wait for nothing".to_owned()),
            key if HOOK_KEYS.contains(&key) => Some(format!("write `{key}` beside `handler`, not inside it")),
            _ => None,
        });
        Self {
            handler: handler.clone(),
            file: handler.get("file"),
            inline: handler.get("inline"),
            input: handler.get("input"),
            strict: handler.get("strict_builtin_errors"),
        }
    }

    /// Where it has its policies.
    pub(super) fn policies(&self) -> Option<Value<'d>> {
        self.file.clone().or_else(|| self.inline.clone())
    }

    /// The policies, checked against the capabilities of their hook.
    pub(super) fn prepare(
        &self,
        capabilities: &[Capability],
        resolver: &dyn ReferenceLookup,
    ) -> Option<RuleHandler> {
        let input = self.input.as_ref().map(written_dialect);
        let strict = self.strict.as_ref().map_or(Some(true), Value::flag);
        let (sources, files) = match (&self.file, &self.inline) {
            (Some(file), None) => in_files(file, resolver)?,
            (None, Some(inline)) => (in_place(inline)?, Vec::new()),
            (Some(_), Some(inline)) => {
                let message = "`file` and `inline` cannot be used together";
                inline.error("rego", message, "keep one of the two");
                return None;
            }
            (None, None) => {
                let mistake = Mistake::error("missing-key", self.handler.span(), "`file` is missing");
                let help = "name a file with a policy, such as `file: policies/guard.rego`, or write one under `inline`";
                self.handler.document().report(mistake.help(help));
                return None;
            }
        };
        if input.as_ref().is_some_and(Option::is_none) {
            return None;
        }
        let sources = RegoSources { input: input.flatten(), is_strict: strict?, ..sources };
        if sources.policies.is_empty() {
            let place = self.file.as_ref().map_or(self.handler.span(), Value::span);
            let mistake = Mistake::error("rego", place, "no file is a policy");
            self.handler.document().report(mistake.help("name a `.rego` file"));
            return None;
        }
        let definition = format!("{:?} {} {:?}", sources.input, sources.is_strict, self.inline_text());
        let (shown, program) = rego_program::program(&sources, capabilities, resolver)?;
        Some(RuleHandler { shown: shown.into(), program, definition: definition.into(), files: files.into() })
    }

    fn inline_text(&self) -> Option<&'d str> {
        self.inline.as_ref().and_then(Value::as_text)
    }
}

/// The dialect whose form of the event policies are given.
fn written_dialect(value: &Value<'_>) -> Option<DialectName> {
    let written = DialectName::ALL.iter().filter(|name| **name != DialectName::Canonical);
    let written: Vec<_> = written.map(|name| (name.as_str(), *name)).collect();
    value.choice(&written)
}

/// The policy in a hook file.
fn in_place<'d>(inline: &Value<'d>) -> Option<RegoSources<'d>> {
    let text = inline.text()?;
    let mut sources = RegoSources::new();
    sources.policies.push(("inline".into(), text.into(), inline.clone()));
    Some(sources)
}

/// The policies and documents in files. Each is read, whatever is wrong with those before it.
fn in_files<'d>(
    file: &Value<'d>,
    resolver: &dyn ReferenceLookup,
) -> Option<(RegoSources<'d>, Vec<FactFile>)> {
    let named = if file.is_list() { file.list()? } else { vec![file.clone()] };
    if named.len() > MOST_FILES {
        file.error("rego", format!("more than {MOST_FILES} files"), "make several hooks of them");
        return None;
    }
    let mut sources = RegoSources::new();
    let mut files = Vec::new();
    let mut are_right = true;
    for value in named {
        are_right &= read_file(&value, resolver, &mut sources, &mut files).is_some();
    }
    are_right.then_some((sources, files))
}

fn read_file<'d>(
    value: &Value<'d>,
    resolver: &dyn ReferenceLookup,
    sources: &mut RegoSources<'d>,
    files: &mut Vec<FactFile>,
) -> Option<()> {
    let path = value.text()?;
    let refuse = |message: String, help: &str| {
        value.error("rego", message, help);
        None
    };
    if files.iter().any(|known| *known.path == *path) {
        return refuse(format!("`file`: `{path}` is named twice"), "keep one of the two");
    }
    let text: Arc<str> = match resolver.text_file(path) {
        Ok(text) => text.into(),
        Err(why) => return refuse(format!("`file`: {why}"), "name a UTF-8 text file inside the workspace"),
    };
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("rego") => sources.policies.push((path.into(), Arc::clone(&text), value.clone())),
        Some("json") => match Json::parse(&text) {
            Ok(json) => sources.data.push((path.into(), json)),
            Err(why) => {
                return refuse(format!("`file`: `{path}` is no JSON: {why}"), "correct the file");
            }
        },
        _ => {
            let message = format!("`file`: `{path}` is neither a policy nor a JSON document");
            return refuse(message, &did_you_mean(path, &[".rego", ".json"]));
        }
    }
    files.push(FactFile { path: path.into(), text });
    Some(())
}
