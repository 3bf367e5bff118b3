#!/bin/sh
cat <<'END'
the build is red
END
