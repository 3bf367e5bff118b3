#!/bin/sh
cat <<'END'
one
END
