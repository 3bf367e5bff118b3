#!/bin/sh
cat <<'END'
{"prevent": true, "reason": "in the middle"}
END
