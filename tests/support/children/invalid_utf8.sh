#!/bin/sh
# Prints bytes that are no UTF-8 and a NUL.
printf '\377\376{\000}\200'
printf '\303' >&2
