#!/bin/sh
sleep 0.2; echo one
