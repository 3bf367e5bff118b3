#!/bin/sh
cat <<'END'
three
END
