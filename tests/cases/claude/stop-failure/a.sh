#!/bin/sh
cat <<'END'
{"systemMessage": "noted"}
END
