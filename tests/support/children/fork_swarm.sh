#!/bin/sh
# Forks 64 children in a tree of depth 6, all in the group, which ignore SIGTERM and hold the pipes.
trap '' TERM
swarm() {
    if [ "$1" -gt 0 ]; then
        swarm $(($1 - 1)) &
        swarm $(($1 - 1)) &
    fi
    sleep 30
}
swarm 5
