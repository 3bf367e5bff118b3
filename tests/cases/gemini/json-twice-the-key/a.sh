#!/bin/sh
echo '{"decision":"deny","decision":"allow"}'
