#!/bin/sh
rm -rf "$HOME"/shop-backups
