#!/bin/sh
cat <<'END'
/tmp/w
END
