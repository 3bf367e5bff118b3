#!/bin/sh
# Exits at once; a grandchild writes the rest of the answer a moment later and closes the pipes.
(sleep 0.05; echo late) &
echo early
