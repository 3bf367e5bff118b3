#!/bin/sh
exit 126
