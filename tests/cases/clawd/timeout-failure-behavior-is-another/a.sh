#!/bin/sh
sleep 20
