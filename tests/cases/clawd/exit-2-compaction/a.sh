#!/bin/sh
echo not now >&2; exit 2
