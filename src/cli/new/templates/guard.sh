#!/bin/sh
# {{name}}: blocks one command that nobody has. Put your own rule in its place.

# Gets the event as one JSON object on standard input. Exit code 0: standard output is the answer, and nothing is no
# opinion; 2: it is blocked, and standard error says why; anything else: the hook has failed.
hook() {
    # Your rule goes here. This one looks at the whole event; `jq -r .tool_input.command` has the command alone.
    if grep -q 'frobnicate --everything'; then
        echo "{{name}}: nobody frobnicates everything here" >&2
        return 2
    fi
}
