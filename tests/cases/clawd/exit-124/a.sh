#!/bin/sh
exit 124
