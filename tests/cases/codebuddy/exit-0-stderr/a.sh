#!/bin/sh
echo 'only a log' >&2
