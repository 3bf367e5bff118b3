#!/bin/sh
echo 'managed' >&2
exit 2
