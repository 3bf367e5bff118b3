#!/bin/sh
echo '{"decision":"deny","reason":7}'
