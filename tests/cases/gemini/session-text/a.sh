#!/bin/sh
echo welcome
