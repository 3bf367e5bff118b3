#!/bin/sh
echo '{"permissionDecision": '
