#!/bin/sh
# Closes stdout and stderr and sleeps: the end of the outputs is not the end of the process.
exec sleep 30 >&- 2>&-
