#!/bin/sh
printf '{"systemMessage":"%s %s"}' "$1" "$2"
