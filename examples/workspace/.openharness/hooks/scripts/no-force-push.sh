# Gets the event as JSON on standard input. Exit code 2 blocks, and standard error says why.
if grep -q 'git push.*--force'; then
  echo "force pushes are not allowed here" >&2
  exit 2
fi
