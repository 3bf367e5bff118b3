#!/bin/sh
cat <<'END'
{"updatedInput": {"quiet": true}}
END
