#!/bin/sh
# Blocks commands that remove everything.

hook() {
    jq -c 'if (.tool_input.command // "" | contains("rm -rf /"))
           then {decision: "block", reason: "this would remove everything"} else empty end'
}

. "$(dirname "$0")/../shell/hookyard-worker.sh"
