#!/bin/sh
echo 'more' >&2
exit 2
