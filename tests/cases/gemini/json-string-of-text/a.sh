#!/bin/sh
echo '"hello"'
