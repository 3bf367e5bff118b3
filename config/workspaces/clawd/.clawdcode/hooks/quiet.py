#!/usr/bin/env python3
"""A rewriter: installs of npm are told to be quiet. What is returned joins the rest of the input."""

import json
import sys

command = json.load(sys.stdin)["tool_input"]["command"]
if "--silent" not in command:
    json.dump({"updatedInput": {"command": command + " --silent"}}, sys.stdout)
