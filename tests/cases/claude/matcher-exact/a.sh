#!/bin/sh
echo 'matched' >&2
exit 2
