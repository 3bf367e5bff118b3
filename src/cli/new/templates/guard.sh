#!/bin/sh
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
