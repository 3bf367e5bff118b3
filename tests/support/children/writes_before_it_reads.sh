#!/bin/sh
# Writes 10 MiB to stdout and to stderr before it reads its stdin; exits 0 only if all of that came.
head -c 10485760 /dev/zero
head -c 10485760 /dev/zero >&2
test "$(wc -c)" -eq 1048576
