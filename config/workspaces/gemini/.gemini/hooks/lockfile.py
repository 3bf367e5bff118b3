#!/usr/bin/env python3
"""A rewriter: `npm install` would change the lockfile, `npm ci` does not."""

import json
import os
import sys

call = json.load(sys.stdin)
if call["tool_input"].get("command") == "npm install":
    install = os.environ["INSTALL"]
    json.dump({"hookSpecificOutput": {"tool_input": {"command": install}}}, sys.stdout)
