#!/bin/sh
# Reads stdin to its end and asks for more, which must be an end at once and no wait.
cat >/dev/null
read -r more && exit 1
exit 0
