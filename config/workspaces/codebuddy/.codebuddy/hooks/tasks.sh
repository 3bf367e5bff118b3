#!/bin/sh
# A context hook: what a session start prints is told to the model.
echo "TASKS.md says what is to be done next."
