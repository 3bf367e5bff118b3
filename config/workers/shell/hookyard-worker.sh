# Serves one hook function in all three modes: oneshot, prespawn and worker. For POSIX shells; needs jq.
#
#     hook() { jq -c 'if … then {decision: "block", reason: "no"} else empty end'; }
#     . path/to/hookyard-worker.sh
#
# The function `hook` gets the envelope on standard input and prints the output object, or nothing for no opinion.
# Another exit code than 0 is the hook's failure; exit code 2 blocks, with standard error as the reason, as in every
# mode. The function runs in a subshell, so what it sets is gone with the event.

# Prints the reply to the request in $1.
hookyard_answer() {
    id=$(printf '%s' "$1" | jq -r '.id')
    errors=$(mktemp) || return 1
    status=0
    output=$(printf '%s' "$1" | jq -c '.envelope' | (hook) 2>"$errors") || status=$?
    if [ "$status" -eq 0 ]; then
        [ -n "$output" ] || output='{}'
        # One value and nothing else; what is none is an error rather than a broken line.
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
        # A cancel is of an event that has been answered by now: one at a time is served.
        esac
    done
else
    hook
fi
