#!/bin/sh
# Never reads its stdin and exits after a moment.
sleep 0.1
echo '{}'
