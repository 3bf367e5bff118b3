#!/bin/sh
cat <<'END'
{"a"
END
echo 'oops' >&2
exit 1
