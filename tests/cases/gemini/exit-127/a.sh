#!/bin/sh
exec ./not-there
