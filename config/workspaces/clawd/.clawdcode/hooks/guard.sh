#!/bin/sh
# A guard: its matcher has found the path already. Exit code 2 blocks, standard error says why.
echo "$FILE_PATH is generated; change its template instead" >&2
exit 2
