#!/usr/bin/env node
// {{name}}: tells that it saw the event. Put what you want to do in its place.
{{imports}}

// Gets the event; returns the answer, or nothing for no opinion. An exception is the hook's failure.
function hook(envelope) {
  // What you want to do goes here.
  return { systemMessage: `{{name}} saw ${envelope.hook_event_name}` };
}

