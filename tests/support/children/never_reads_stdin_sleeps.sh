#!/bin/sh
# Never reads its stdin and sleeps.
exec sleep 30
