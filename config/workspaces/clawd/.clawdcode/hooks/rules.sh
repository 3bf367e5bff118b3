#!/bin/sh
# A context hook: what it prints with a prompt is told to the model.
echo "Prices are whole cents."
