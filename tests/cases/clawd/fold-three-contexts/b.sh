#!/bin/sh
sleep 0.1; echo two
