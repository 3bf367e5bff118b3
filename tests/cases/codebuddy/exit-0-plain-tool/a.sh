#!/bin/sh
cat <<'END'
fine by me
END
