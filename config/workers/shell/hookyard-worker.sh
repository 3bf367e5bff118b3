# Serves one hook function in all three modes: oneshot, prespawn and worker. For POSIX shells; needs jq.
#
#     hook() { jq -c 'if … then {decision: "block", reason: "no"} else empty end'; }
#     . path/to/hookyard-worker.sh
#
# The function `hook` gets the envelope on standard input and prints the output object, or nothing if it has no opinion.
# Exit code 2 blocks, with standard error as the reason, as in every mode; any other code but 0 means that the hook
# failed. The function runs in a subshell, so variables that it sets are not kept between events.

# Prints the reply to the request in $1.
hookyard_answer() {
    id=$(printf '%s' "$1" | jq -r '.id')
    errors=$(mktemp) || return 1
    status=0
    output=$(printf '%s' "$1" | jq -c '.envelope' | (hook) 2>"$errors") || status=$?
    if [ "$status" -eq 0 ]; then
        [ -n "$output" ] || output='{}'
        # Anything but one JSON value is an error, not a line that violates the protocol.
        printf '%s' "$output" | jq -c -s --arg id "$id" \
            'if length == 1 then {id: $id, output: .[0]} else {id: $id, error: "not one JSON value"} end' 2>/dev/null ||
            jq -n -c --arg id "$id" '{id: $id, error: "the output is not JSON"}'
    elif [ "$status" -eq 2 ]; then
        jq -n -c --arg id "$id" --rawfile reason "$errors" \
            '{id: $id, output: {decision: "block", reason: ($reason | sub("\\s+$"; ""))}}'
    else
        jq -n -c --arg id "$id" --arg status "$status" '{id: $id, error: "exit code \($status)"}'
    fi
    cat "$errors" >&2
    rm -f "$errors"
}

if [ "${HOOKYARD_WORKER:-}" = 1 ]; then
    printf '{"hookyard":1}\n'
    while IFS= read -r line; do
        case $line in
        '{"id":'*) hookyard_answer "$line" ;;
        '{"ping":'*) printf '{"pong":1}\n' ;;
        # Ignores "cancel": events are served one at a time, so a cancelled one is answered by now.
        esac
    done
else
    hook
fi
