#!/bin/sh
cat > told.json
cat <<'END'
{"updatedInput": {"timeout": 9}}
END
