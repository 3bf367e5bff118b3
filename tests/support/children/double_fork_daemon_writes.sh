#!/bin/sh
# Double-forks a daemon that left the group, keeps the pipes and writes to them for 5 s.
setsid sh -c '(i=0; while [ $i -lt 100 ]; do echo tick; sleep 0.05; i=$((i + 1)); done) &' &
wait
echo done
