#!/bin/sh
echo '"{\"decision\":\"deny\",\"reason\":\"no\"}"'
