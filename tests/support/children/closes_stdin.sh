#!/bin/sh
# Closes its stdin unread and goes on: the writer gets a broken pipe while the child is alive.
exec <&-
sleep 0.2
echo '{}'
