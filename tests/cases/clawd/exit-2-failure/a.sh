#!/bin/sh
echo try again >&2; exit 2
