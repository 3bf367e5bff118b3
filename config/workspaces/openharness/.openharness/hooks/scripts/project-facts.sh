#!/bin/sh
# Adds what everyone on the project knows (resources/project-facts.md) to a context that is being built.

case $(cat) in
  '{'*'}') ;;
  *) echo 'project-facts: stdin holds no JSON object' >&2; exit 1 ;;
esac

facts=$(dirname "$0")/../resources/project-facts.md
[ -r "$facts" ] || { echo "project-facts: cannot read $facts" >&2; exit 1; }

# As a JSON string: control characters go, backslashes and quotes are escaped, lines are joined by \n.
text=$(tr '\t' ' ' <"$facts" | tr -d '\000-\011\013-\037' |
  sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' | awk '{ printf "%s%s", separator, $0; separator = "\\n" }')

printf '{"hookSpecificOutput":{"hookEventName":"before_context_build","additionalContext":"%s"}}\n' "$text"
