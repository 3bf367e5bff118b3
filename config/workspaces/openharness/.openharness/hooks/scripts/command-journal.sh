#!/bin/sh
# Tells the operator which command is about to run, as the hooks before this one have left it.

envelope=$(cat)
case $envelope in
  '{'*'}') ;;
  *) echo 'command-journal: stdin holds no JSON object' >&2; exit 1 ;;
esac

# The command stays escaped as it came, so it can go into the answer's JSON as it is.
printf '%s' "$envelope" | tr '\n' ' ' | awk '
  {
    if (!match($0, /"tool_input"[ \t]*:[ \t]*[{]/)) exit
    input = substr($0, RSTART + RLENGTH)
    if (!match(input, /"command"[ \t]*:[ \t]*"/)) exit
    rest = substr(input, RSTART + RLENGTH)
    if (!match(rest, /^([^"\\]|\\.)*"/)) exit
    print "{\"systemMessage\":\"About to run: " substr(rest, 1, RLENGTH - 1) "\"}"
  }'
