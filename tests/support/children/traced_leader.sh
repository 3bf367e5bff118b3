#!/bin/sh
# A tracer outside the group seizes this shell and never collects its death, so that for 2 s the killed shell
# can be reaped by nobody. Prints "seized" on stdout when it holds, exits 9 where tracing is not allowed.
trap '' TERM
command -v python3 >/dev/null || exit 9
setsid python3 -c '
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
if libc.ptrace(0x4206, int(sys.argv[1]), 0, 0) != 0:
    os.kill(int(sys.argv[1]), 9)
    sys.exit()
print("seized", flush=True)
os.close(0); os.close(1); os.close(2)
time.sleep(2)
' $$ &
while :; do sleep 0.05; done
