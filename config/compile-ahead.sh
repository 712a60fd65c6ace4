#!/bin/sh
# compile-ahead.sh 'UID ...' MODULE...: precompiles the modules that the programs load, when an image is built or a
# package is installed. They then start in half the time, even if they may not write here. Node.js caches compiled code
# per user and per set of its own options, which are those of src/capfleet. A module that does not load is a file or
# library that is missing.
set -eu
USERS=$1
shift
cd /opt/capfleet
install -d -m 755 node_modules/.cache node_modules/.cache/capfleet
for MODULE; do IMPORTS="${IMPORTS-}${IMPORTS+, }import('./$MODULE')"; done
LOAD="import('./src/shared/base/compile-cache.ts').then((cache) => { cache.useCompileCache(); return Promise.all([$IMPORTS]) })"
for USER in $USERS; do
  # Only this user may write there meanwhile: another one could leave code for it to run.
  rm -rf node_modules/.cache/capfleet/*-"$USER"
  chown "$USER" node_modules/.cache/capfleet
  setpriv --reuid "$USER" --regid "$USER" --clear-groups sh -ec '
    node_modules/.bin/node --max-semi-space-size=16 --eval "$1"
    src/capfleet help health > /dev/null' sh "$LOAD"
done
chown -R root:root node_modules/.cache
chmod -R a+rX,go-w .
