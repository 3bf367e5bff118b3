#!/bin/sh
echo '{"decision":"block","reason":"no"}' >&2
exit 2
