#!/bin/sh
# Exits 2 and prints an allow.
echo '{"decision":"allow"}'
exit 2
