#!/bin/sh
# Writes a little again and again, faster than any idle limit would notice, and never ends.
while :; do echo tick; sleep 0.02; done
