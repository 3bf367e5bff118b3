#!/bin/sh
# {{name}}: reports that it saw the event. Replace this with your own code.

# Gets the event as one JSON object on standard input. Exit code 0: standard output is the answer, and an empty one is no
# opinion; 2: block, where that is possible, with standard error as the reason; any other: the hook failed.
hook() {
    # Your code goes here. `jq -r .hook_event_name` prints the kind of event.
    bytes=$(wc -c)
    printf '{"systemMessage": "{{name}} saw an event of %d bytes"}\n' "$bytes"
}
