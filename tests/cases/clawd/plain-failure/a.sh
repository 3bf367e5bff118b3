#!/bin/sh
echo the file was moved
