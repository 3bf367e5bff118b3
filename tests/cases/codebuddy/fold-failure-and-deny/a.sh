#!/bin/sh
echo 'x' >&2
exit 1
