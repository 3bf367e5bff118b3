#!/bin/sh
echo looks fine
