#!/bin/sh
# Reads its stdin to the end and prints its length.
wc -c | tr -d ' '
