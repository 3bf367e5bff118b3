#!/bin/sh
echo cannot connect >&2; exit 1
