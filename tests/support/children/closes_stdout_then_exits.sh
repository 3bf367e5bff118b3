#!/bin/sh
# Closes stdout early and exits with a code a moment later.
exec >&-
sleep 0.2
exit 7
