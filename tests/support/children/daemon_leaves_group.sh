#!/bin/sh
# Starts a daemon in a session of its own, without the pipes; it ends by itself after 5 s.
setsid sh -c 'sleep 5' </dev/null >/dev/null 2>&1 &
echo '{}'
