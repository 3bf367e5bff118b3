#!/bin/sh
# Stops itself with SIGSTOP.
kill -STOP $$
