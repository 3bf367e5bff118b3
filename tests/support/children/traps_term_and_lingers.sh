#!/bin/sh
# On SIGTERM says goodbye and exits 0 in good order.
trap 'echo goodbye; exit 0' TERM
while :; do sleep 0.05; done
