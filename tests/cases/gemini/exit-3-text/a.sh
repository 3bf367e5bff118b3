#!/bin/sh
echo 'not that'
exit 3
