#!/bin/sh
sleep 0.5; echo no >&2; exit 2
