#!/bin/sh
echo '{"decision": "deny",'
exit 2
