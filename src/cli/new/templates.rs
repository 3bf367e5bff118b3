//! The files that `new` writes: scripts that note or guard, their questions to models, and a server.

/// An agent hook.
pub(super) const AGENT_MD: &str = r"---
model_ref: {{model}}
tools: [read_file, grep, glob]
max_turns: 4
description: Reviews what an agent is about to do
---
You are a careful reviewer. You read before you judge, and you judge only what you have read. Replace this with the role
of your own agent.
";

/// A guard in JavaScript.
pub(super) const GUARD_MJS: &str = r#"#!/usr/bin/env node
// {{name}}: blocks a made-up command. Replace it with your own rule.
{{imports}}

// Gets the event. Returns the answer, or nothing for no opinion. An exception makes the hook fail.
function hook(envelope) {
  const command = String(envelope.tool_input?.command ?? "");
  // Your rule goes here.
  if (command.includes("frobnicate --everything")) {
    return { decision: "block", reason: "{{name}}: nobody frobnicates everything here" };
  }
}

"#;

/// A guard in Python.
pub(super) const GUARD_PY: &str = r#"#!/usr/bin/env python3
"""{{name}}: blocks a made-up command. Replace it with your own rule."""

{{imports}}

def hook(envelope):
    """Gets the event. Returns the answer, or None for no opinion. An exception makes the hook fail."""
    command = str((envelope.get("tool_input") or {}).get("command", ""))
    # Your rule goes here.
    if "frobnicate --everything" in command:
        return {"decision": "block", "reason": "{{name}}: nobody frobnicates everything here"}
    return None

"#;

/// A guard for the shell.
pub(super) const GUARD_SH: &str = r#"#!/bin/sh
# {{name}}: blocks a made-up command. Replace it with your own rule.

# Gets the event as one JSON object on standard input. Exit code 0: standard output is the answer, and an empty one is no
# opinion; 2: block, with standard error as the reason; any other: the hook failed.
hook() {
    # Your rule goes here. This one searches the whole event; `jq -r .tool_input.command` prints only the command.
    if grep -q 'frobnicate --everything'; then
        echo "{{name}}: nobody frobnicates everything here" >&2
        return 2
    fi
}
"#;

/// A question to a model that only observes.
pub(super) const NOTE_MD: &str = r"You watch what an agent does. Replace this with your own question.

Tell the operator in one short sentence what this event is about. Object to nothing.
";

/// An observer in JavaScript.
pub(super) const NOTE_MJS: &str = r"#!/usr/bin/env node
// {{name}}: reports that it saw the event. Replace this with your own code.
{{imports}}

// Gets the event. Returns the answer, or nothing for no opinion. An exception makes the hook fail.
function hook(envelope) {
  // Your code goes here.
  return { systemMessage: `{{name}} saw ${envelope.hook_event_name}` };
}

";

/// An observer in Python.
pub(super) const NOTE_PY: &str = r#"#!/usr/bin/env python3
"""{{name}}: reports that it saw the event. Replace this with your own code."""

{{imports}}

def hook(envelope):
    """Gets the event. Returns the answer, or None for no opinion. An exception makes the hook fail."""
    # Your code goes here.
    return {"systemMessage": "{{name}} saw " + envelope["hook_event_name"]}

"#;

/// An observer for the shell.
pub(super) const NOTE_SH: &str = r#"#!/bin/sh
# {{name}}: reports that it saw the event. Replace this with your own code.

# Gets the event as one JSON object on standard input. Exit code 0: standard output is the answer, and an empty one is no
# opinion; 2: block, where that is possible, with standard error as the reason; any other: the hook failed.
hook() {
    # Your code goes here. `jq -r .hook_event_name` prints the kind of event.
    bytes=$(wc -c)
    printf '{"systemMessage": "{{name}} saw an event of %d bytes"}\n' "$bytes"
}
"#;

/// A question to a model that guards.
pub(super) const PROMPT_MD: &str = r"You guard the commands that an agent runs. Replace this with your own question.

Does the command contain `frobnicate --everything`? Then block it, and say that nobody frobnicates everything here.
Object to nothing else.
";

/// A server of http hooks.
pub(super) const SERVER_PY: &str = r#"#!/usr/bin/env python3
"""{{name}}: the server of this hook. Start it before the agent. Any server that answers in JSON works too."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADDRESS = ("127.0.0.1", 8377)


def hook(envelope):
    """Gets the event. Returns the answer, or None for no opinion."""
    command = str((envelope.get("tool_input") or {}).get("command", ""))
    # Your rule goes here.
    if "frobnicate --everything" in command:
        return {"decision": "block", "reason": "{{name}}: nobody frobnicates everything here"}
    return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        envelope = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body = json.dumps(hook(envelope) or {}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    print("{{name}} listens on http://%s:%d" % ADDRESS, flush=True)
    ThreadingHTTPServer(ADDRESS, Handler).serve_forever()
"#;

/// A rule that guards.
pub(super) const RULE_GUARD: &str = r#"  type: rule
  let:
    # Every command that the line runs, however it is written: quoted, in `bash -c`, behind `sudo`, in `$(…)`.
    line: "has(tool.input.command) ? tool.input.command : ''"
    commands: shell.commands(line)
  # Your rule goes here.
  deny: commands.exists(c, c.name == "frobnicate" && c.has_flag("everything"))
  reason: '"{{name}}: nobody frobnicates everything here"'
"#;

/// A rule that notes.
pub(super) const RULE_NOTE: &str = r#"  type: rule
  # Your note goes here.
  message: '"{{name}} has seen " + event.kind'
"#;

/// A policy in Rego that guards.
#[cfg(feature = "rego")]
pub(super) const REGO_GUARD: &str = r#"# {{name}}: blocks a made-up command. Replace it with your own rule.
package {{package}}

deny contains decision if {
    # Your rule goes here.
    regex.match(`\bfrobnicate\b.*--everything`, input.tool_input.command)
    decision := {
        "rule_id": "{{name}}",
        "reason": "{{name}}: nobody frobnicates everything here",
    }
}
"#;

/// A policy in Rego that notes.
#[cfg(feature = "rego")]
pub(super) const REGO_NOTE: &str = r#"# {{name}}: a note about each event. Replace it with your own rule.
package {{package}}

message contains concat(" ", ["{{name}} has seen", input.event])
"#;
