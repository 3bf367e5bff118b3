#!/bin/sh
echo 'seen' >&2
exit 2
