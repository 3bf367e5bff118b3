#!/bin/sh
cat <<'END'
{"updatedInput": {"options": {"b": 2}}}
END
