#!/bin/sh
echo log
echo '{"decision":"deny"}'
