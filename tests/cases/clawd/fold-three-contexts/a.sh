#!/bin/sh
sleep 0.3; echo one
