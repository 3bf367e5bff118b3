#!/bin/sh
echo the branch is main
