#!/bin/sh
echo; echo lint: 2 warnings; echo
