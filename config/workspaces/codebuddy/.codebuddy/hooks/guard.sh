#!/bin/sh
# A guard: blocks commands that delete everything. Exit code 2 blocks, standard error says why.
if grep -q '"command":"[^"]*rm -rf /'; then
  echo "rm -rf / is not allowed here" >&2
  exit 2
fi
