#!/bin/sh
cat <<'END'
on branch main
END
