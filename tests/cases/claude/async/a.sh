#!/bin/sh
sleep 0.2
echo 'no say' >&2
exit 2
