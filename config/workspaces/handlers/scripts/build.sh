#!/bin/sh
rm -rf build/*
mkdir -p build
