#!/bin/sh
# On SIGTERM starts itself anew in the background, five times at most, and exits.
generation=${1:-0}
respawn() {
    [ "$generation" -lt 5 ] && sh "$0" $((generation + 1)) &
    exit 0
}
trap respawn TERM
while :; do sleep 0.05; done
