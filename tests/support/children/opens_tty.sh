#!/bin/sh
# Asks for a password on the terminal, as ssh and sudo do; without a terminal it exits 9.
(: </dev/tty) 2>/dev/null || exit 9
printf 'password: ' >/dev/tty
read -r answer </dev/tty
