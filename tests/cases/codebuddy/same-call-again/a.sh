#!/bin/sh
echo x >> count
printf '{"systemMessage":"%s"}' "$(wc -l < count | tr -d ' ')"
