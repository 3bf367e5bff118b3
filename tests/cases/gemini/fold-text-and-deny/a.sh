#!/bin/sh
cat <<'END'
not that
END
exit 2
