#!/bin/sh
echo careful >&2
exit 1
