#!/bin/sh
echo 'not that' >&2
exit 2
