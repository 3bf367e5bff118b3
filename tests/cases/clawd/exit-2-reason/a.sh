#!/bin/sh
echo not on a Friday >&2; exit 2
