#!/bin/sh
cat <<'END'
bye
END
