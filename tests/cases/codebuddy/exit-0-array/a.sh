#!/bin/sh
cat <<'END'
[1]
END
