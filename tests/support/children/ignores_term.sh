#!/bin/sh
# Ignores SIGTERM and sleeps in small steps, so that a signal to a sleep does not end it.
trap '' TERM
while :; do sleep 1; done
