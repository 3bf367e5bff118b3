#!/bin/sh
# Writes 1 GiB to stderr, between a first and a last line.
echo first >&2
head -c 1073741824 /dev/zero >&2
echo last >&2
