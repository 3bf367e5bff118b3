#!/bin/sh
cat <<'END'

END
