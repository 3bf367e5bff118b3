#!/bin/sh
# Forks without pause, at most 2000 times, each child short-lived: the group changes while it is killed.
trap '' TERM
left=2000
while [ $left -gt 0 ]; do
    sleep 0.05 &
    left=$((left - 1))
done
sleep 30
