#!/bin/sh
echo 'project' >&2
exit 2
