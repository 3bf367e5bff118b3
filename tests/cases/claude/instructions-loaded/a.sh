#!/bin/sh
cat <<'END'
{"systemMessage": "seen"}
END
