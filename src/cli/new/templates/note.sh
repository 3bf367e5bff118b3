#!/bin/sh
# {{name}}: tells that it saw the event. Put what you want to do in its place.

# Gets the event as one JSON object on standard input. Exit code 0: standard output is the answer, and nothing is no
# opinion; 2: it is blocked, where that is possible, and standard error says why; anything else: the hook has failed.
hook() {
    # What you want to do goes here. `jq -r .hook_event_name`, say, has the event's kind.
    bytes=$(wc -c)
    printf '{"systemMessage": "{{name}} saw an event of %d bytes"}\n' "$bytes"
}
