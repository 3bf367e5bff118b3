#!/bin/sh
# Exits at once, without a look at its stdin.
exit 0
