#!/bin/sh
echo 'name it better' >&2
exit 2
