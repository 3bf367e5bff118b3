#!/bin/sh
echo careful
exit 1
