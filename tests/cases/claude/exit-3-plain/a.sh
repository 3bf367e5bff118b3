#!/bin/sh
cat <<'END'
context?
END
echo 'boom' >&2
exit 3
