#!/bin/sh
cat <<'END'
{"prevent": true, "reason": "b"}
END
