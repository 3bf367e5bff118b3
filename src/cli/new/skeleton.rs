//! What a new hook can be, and its contents: its files, and an event to try it with. Pure: nothing is written.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::{
    super::schema,
    files::{FileRole, NewFile},
    templates,
};
use crate::model::{EventKind, HttpTarget, MatchField};

/// The schema's file, from the directory of hook files.
const SCHEMA: &str = "resources/openharness-hook.schema.json";

/// The model of prompt and agent hooks, if the settings have none.
const MODEL: &str = "local/small";

/// The policies of a guard that fails only if something is wrong with it.
const FAIL_CLOSED: &str = "on_error: deny             # if the guard fails, it blocks; without this, failures are ignored\non_timeout: deny\n";

/// The type of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum HandlerType {
    /// A program
    Command,
    /// A request to a web server
    Http,
    /// A question to a language model
    Prompt,
    /// A task for an agent
    Agent,
    /// Expressions that are evaluated inside hookyard
    Rule,
    /// A policy in Rego that is evaluated inside hookyard
    #[cfg(feature = "rego")]
    Rego,
}

/// The language of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum ScriptLanguage {
    /// POSIX shell; with `--mode worker` it needs `jq`
    #[default]
    Sh,
    /// Python 3
    Python,
    /// JavaScript for Node.js
    Node,
}

/// How a command's process is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum ProcessMode {
    /// One process per event
    #[default]
    Oneshot,
    /// One process per event, started in advance
    Prespawn,
    /// One process for many events
    Worker,
}

/// The tools that run shell commands, by the names that agents have for them.
const SHELL_MATCHER: &str = "\
# The shell of Claude Code and Codex, of Cursor, of Copilot CLI, of Gemini CLI and Qwen Code. Without it: every tool.
matcher: ^(Bash|Shell|bash|run_shell_command)$
";

/// A path below the directory of hooks.
pub(super) fn in_hooks(rest: &str) -> PathBuf {
    Path::new(".openharness/hooks").join(rest)
}

/// What the command line asks for.
pub(super) struct SkeletonRequest<'a> {
    pub(super) name: &'a str,
    pub(super) kind: HandlerType,
    pub(super) language: ScriptLanguage,
    pub(super) start: ProcessMode,
    pub(super) events: Vec<EventKind>,
    /// The first model of the settings.
    pub(super) model: Option<&'a str>,
}

/// The files to write, and what to say about them.
pub(super) struct HookSkeleton {
    pub(super) files: Vec<NewFile>,
    /// The model that the hook uses.
    pub(super) model: Option<String>,
    /// The server that the hook calls.
    pub(super) server: Option<PathBuf>,
    pub(super) remarks: Vec<&'static str>,
    /// An event that selects the hook. A guard blocks it.
    pub(super) event: Value,
}

/// Where the server of an http hook's skeleton listens.
const SERVER: &str = "127.0.0.1:8377";

/// The server of an http hook's skeleton, as the settings allow it.
pub(super) fn server_target() -> HttpTarget {
    SERVER.parse().expect("an address with its port")
}

/// What the settings need for the server of an http hook's skeleton.
pub(super) fn settings_for_server() -> String {
    format!("http:\n  allow: [\"{SERVER}\"]\n")
}

/// The entry of the settings for a model.
pub(super) fn settings_for(model: &str) -> String {
    let name = plain(model);
    format!(
        "models:\n  {name}:\n    api: openai                             # or anthropic\n    \
         base_url: http://127.0.0.1:11434/v1     # the address of the API\n    \
         model: qwen3:8b                         # the model's name there\n"
    )
}

/// The templates of a language.
struct ScriptTemplates {
    guard: &'static str,
    note: &'static str,
    program: &'static str,
    extension: &'static str,
    /// The worker SDK: its file name and text.
    functions: (&'static str, &'static str),
    /// Code above and below the hook function, to serve one event.
    alone: (&'static str, &'static str),
    /// The same, to serve as a worker.
    worker: (&'static str, &'static str),
}

macro_rules! functions {
    ($folder:literal, $name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/config/workers/", $folder, "/", $name)))
    };
}

static SH: ScriptTemplates = ScriptTemplates {
    guard: templates::GUARD_SH,
    note: templates::NOTE_SH,
    program: "sh",
    extension: "sh",
    functions: functions!("shell", "hookyard-worker.sh"),
    alone: ("", "\nhook\n"),
    worker: ("", "\n. \"$(dirname \"$0\")/hookyard-worker.sh\"\n"),
};

static PYTHON: ScriptTemplates = ScriptTemplates {
    guard: templates::GUARD_PY,
    note: templates::NOTE_PY,
    program: "python3",
    extension: "py",
    functions: functions!("python", "hookyard_worker.py"),
    alone: (
        "import json\nimport sys\n",
        "\nif __name__ == \"__main__\":\n    answer = hook(json.load(sys.stdin))\n    if answer:\n        \
         print(json.dumps(answer))\n",
    ),
    worker: ("from hookyard_worker import serve\n", "\nif __name__ == \"__main__\":\n    serve(hook)\n"),
};

static NODE: ScriptTemplates = ScriptTemplates {
    guard: templates::GUARD_MJS,
    note: templates::NOTE_MJS,
    program: "node",
    extension: "mjs",
    functions: functions!("javascript", "hookyard-worker.mjs"),
    alone: (
        "import { text } from \"node:stream/consumers\";",
        "const answer = hook(JSON.parse(await text(process.stdin)));\n\
         if (answer) process.stdout.write(JSON.stringify(answer));\n",
    ),
    worker: ("import { serve } from \"./hookyard-worker.mjs\";", "await serve(hook);\n"),
};

impl ScriptLanguage {
    fn templates(self) -> &'static ScriptTemplates {
        match self {
            Self::Sh => &SH,
            Self::Python => &PYTHON,
            Self::Node => &NODE,
        }
    }
}

impl SkeletonRequest<'_> {
    /// The files of the hook.
    pub(super) fn skeleton(&self) -> HookSkeleton {
        let text = schema::HOOK_FILES.to_owned();
        let schema = NewFile { path: in_hooks(SCHEMA), text, part: FileRole::Shared };
        let mut skeleton = HookSkeleton {
            files: Vec::new(),
            model: None,
            server: None,
            remarks: Vec::new(),
            event: self.event(),
        };
        let handler = match self.kind {
            HandlerType::Command => self.command(&mut skeleton),
            HandlerType::Http => self.http(&mut skeleton),
            HandlerType::Prompt => self.prompt(&mut skeleton),
            HandlerType::Agent => self.agent(&mut skeleton),
            HandlerType::Rule => self.rule(),
            #[cfg(feature = "rego")]
            HandlerType::Rego => self.rego(&mut skeleton),
        };
        let path = in_hooks(&format!("{}.yaml", self.name));
        skeleton.files.insert(0, NewFile { path, text: self.hook_file(&handler), part: FileRole::Config });
        skeleton.files.push(schema);
        skeleton
    }

    /// Whether the hook is a guard, which can block; otherwise it only logs.
    fn is_guard(&self) -> bool {
        self.events.contains(&EventKind::BeforeToolDispatch)
    }

    fn hook_file(&self, handler: &str) -> String {
        let events: Vec<&str> = self.events.iter().map(|kind| kind.as_str()).collect();
        let of_tools = self.events.iter().all(|kind| kind.match_field() == Some(MatchField::ToolName));
        let matcher = if of_tools { SHELL_MATCHER } else { "" };
        let policies = match self.kind {
            _ if !self.is_guard() => "",
            HandlerType::Command | HandlerType::Rule => FAIL_CLOSED,
            #[cfg(feature = "rego")]
            HandlerType::Rego => FAIL_CLOSED,
            HandlerType::Http | HandlerType::Prompt | HandlerType::Agent => {
                "# on_error: deny           # for a guard: failures block instead of being ignored.\n\
                 # on_timeout: deny         # Set both once the service is reliable.\n"
            }
        };
        format!(
            "# yaml-language-server: $schema={SCHEMA}\nname: {}\nevents: [{}]\n{matcher}handler:\n{handler}{policies}",
            plain(self.name),
            events.join(", "),
        )
    }

    fn filled(&self, template: &str) -> String {
        template.replace("{{name}}", self.name)
    }

    fn command(&self, skeleton: &mut HookSkeleton) -> String {
        let templates = self.language.templates();
        let script = in_hooks(&format!("scripts/{}.{}", self.script_name(), templates.extension));
        let line = format!("exec {} {}", templates.program, script.display());
        let (above, below) = match self.start {
            ProcessMode::Oneshot | ProcessMode::Prespawn => templates.alone,
            ProcessMode::Worker => templates.worker,
        };
        let body = if self.is_guard() { templates.guard } else { templates.note };
        let text = self.filled(body).replace("{{imports}}", above) + below;
        skeleton.files.push(NewFile { path: script, text, part: FileRole::Script });
        if self.start == ProcessMode::Worker {
            let (name, text) = templates.functions;
            let path = in_hooks("scripts").join(name);
            skeleton.files.push(NewFile { path, text: text.to_owned(), part: FileRole::Shared });
            if self.language == ScriptLanguage::Sh {
                skeleton.remarks.push("As a worker, the script needs `jq`.");
            }
        }
        let mode = match self.start {
            ProcessMode::Oneshot => "",
            ProcessMode::Prespawn => "  mode: prespawn           # the next process is started in advance\n",
            ProcessMode::Worker => "  mode: worker             # one process serves many events\n",
        };
        format!("  type: command\n  command: {line}\n{mode}  timeout_seconds: 10\n")
    }

    /// The name of the script. A Python file next to others must not have the name of a standard module: it would
    /// hide it from them.
    fn script_name(&self) -> String {
        let could_be_imported = !self.name.contains(['-', '.']);
        if self.language == ScriptLanguage::Python && could_be_imported {
            format!("{}-hook", self.name)
        } else {
            self.name.to_owned()
        }
    }

    fn http(&self, skeleton: &mut HookSkeleton) -> String {
        let path = in_hooks(&format!("scripts/{}-server.py", self.name));
        skeleton.server = Some(path.clone());
        skeleton.files.push(NewFile {
            path,
            text: self.filled(templates::SERVER_PY),
            part: FileRole::Script,
        });
        skeleton.remarks.push("Until its server is started, the hook fails; by default that is ignored.");
        "  type: http\n  url: http://127.0.0.1:8377/    # where the server of scripts/ listens\n  \
         timeout_seconds: 5\n"
            .to_owned()
    }

    fn model(&self, skeleton: &mut HookSkeleton) -> String {
        let model = self.model.unwrap_or(MODEL);
        skeleton.model = Some(model.to_owned());
        plain(model)
    }

    fn prompt(&self, skeleton: &mut HookSkeleton) -> String {
        let path = in_hooks(&format!("prompts/{}.md", self.name));
        let shown = path.display().to_string();
        skeleton.files.push(NewFile { path, text: self.question().to_owned(), part: FileRole::Config });
        let model = self.model(skeleton);
        format!("  type: prompt\n  prompt:\n    file: {shown}\n  model_ref: {model}\n  timeout_seconds: 30\n")
    }

    fn question(&self) -> &'static str {
        if self.is_guard() { templates::PROMPT_MD } else { templates::NOTE_MD }
    }

    fn agent(&self, skeleton: &mut HookSkeleton) -> String {
        let path = PathBuf::from(format!(".openharness/agents/{}.md", self.name));
        let model = self.model(skeleton);
        let text = templates::AGENT_MD.replace("{{model}}", &model);
        skeleton.files.push(NewFile { path, text, part: FileRole::Config });
        let task: Vec<String> = self.question().lines().map(|line| format!("      {line}")).collect();
        let task = task.join("\n").replace("\n      \n", "\n\n");
        let name = plain(self.name);
        format!("  type: agent\n  agent: {name}\n  task:\n    inline: |\n{task}\n  timeout_seconds: 60\n")
    }

    fn rule(&self) -> String {
        let template = if self.is_guard() { templates::RULE_GUARD } else { templates::RULE_NOTE };
        self.filled(template)
    }

    #[cfg(feature = "rego")]
    fn rego(&self, skeleton: &mut HookSkeleton) -> String {
        let path = in_hooks(&format!("policies/{}.rego", self.name));
        let shown = path.display().to_string();
        let template = if self.is_guard() { templates::REGO_GUARD } else { templates::REGO_NOTE };
        let name: String =
            self.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let text = self.filled(template).replace("{{package}}", &format!("hooks.p_{name}"));
        skeleton.files.push(NewFile { path, text, part: FileRole::Config });
        format!("  type: rego\n  file: {shown}\n")
    }

    /// An event to try the hook with.
    fn event(&self) -> Value {
        let guarded = EventKind::BeforeToolDispatch;
        let kind = if self.is_guard() { guarded } else { self.events.first().copied().unwrap_or(guarded) };
        sample_event(kind)
    }
}

/// An event of a kind, as JSON of the canonical dialect.
pub(in crate::cli) fn sample_event(kind: EventKind) -> Value {
    let mut event = json!({ "event": kind.as_str(), "session_id": "try", "run_id": "try" });
    let more = match kind.match_field() {
        Some(MatchField::ToolName) => {
            json!({ "tool_name": "Bash", "tool_input": { "command": "frobnicate --everything" } })
        }
        Some(MatchField::ModelRef) => json!({ "model_ref": MODEL }),
        Some(MatchField::TriggerType) => json!({ "trigger_type": "manual" }),
        _ => json!({ "context": { "messages": [] } }),
    };
    if let (Value::Object(event), Value::Object(more)) = (&mut event, more) {
        event.extend(more);
    }
    event
}

/// A text as YAML, quoted only where YAML would read it as something else.
fn plain(text: &str) -> String {
    let old_words = ["y", "n", "yes", "no", "on", "off"];
    let is_text = matches!(serde_yaml::from_str(text), Ok(Value::String(read)) if read == text);
    let begins_with_letter = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if is_text && begins_with_letter && !old_words.contains(&text.to_ascii_lowercase().as_str()) {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}
