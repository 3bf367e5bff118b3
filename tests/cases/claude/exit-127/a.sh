#!/bin/sh
no-such-program-here
