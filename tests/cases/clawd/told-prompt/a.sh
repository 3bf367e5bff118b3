#!/bin/sh
cat > told.json
