#!/bin/sh
echo three
