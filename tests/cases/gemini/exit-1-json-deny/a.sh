#!/bin/sh
echo '{"decision":"deny","reason":"no"}'
exit 1
