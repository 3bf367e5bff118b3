#!/usr/bin/env node
// {{name}}: reports that it saw the event. Replace this with your own code.
{{imports}}

// Gets the event. Returns the answer, or nothing for no opinion. An exception makes the hook fail.
function hook(envelope) {
  // Your code goes here.
  return { systemMessage: `{{name}} saw ${envelope.hook_event_name}` };
}

