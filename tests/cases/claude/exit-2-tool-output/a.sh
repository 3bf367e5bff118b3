#!/bin/sh
echo 'looks wrong' >&2
exit 2
