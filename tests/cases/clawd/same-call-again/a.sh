#!/bin/sh
echo x >> count; printf '{"permissionDecision":"ask","permissionDecisionReason":"%s"}' "$(wc -l < count | tr -d " ")"
