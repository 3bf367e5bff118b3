#!/bin/sh
echo 'TASKS.md is next'
