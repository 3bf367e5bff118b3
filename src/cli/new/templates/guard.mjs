#!/usr/bin/env node
// {{name}}: blocks one command that nobody has. Put your own rule in its place.
{{imports}}

// Gets the event; returns the answer, or nothing for no opinion. An exception is the hook's failure.
function hook(envelope) {
  const command = String(envelope.tool_input?.command ?? "");
  // Your rule goes here.
  if (command.includes("frobnicate --everything")) {
    return { decision: "block", reason: "{{name}}: nobody frobnicates everything here" };
  }
}

