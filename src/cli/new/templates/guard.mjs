#!/usr/bin/env node
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

