#!/bin/sh
echo odd >&2; exit 3
