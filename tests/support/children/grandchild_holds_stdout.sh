#!/bin/sh
# Answers and exits, while a grandchild in the same group keeps stdout and stderr open.
sleep 30 &
echo '{}'
