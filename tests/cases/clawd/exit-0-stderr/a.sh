#!/bin/sh
echo oops >&2
