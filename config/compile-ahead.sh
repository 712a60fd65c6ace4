#!/bin/sh
# compile-ahead.sh 'UID ...' MODULE...: precompiles the modules that the programs of an image load, while it is built.
# They then start in half the time, even with a read-only root. Node.js caches compiled code per user and per set of
# its own options, which are those of src/capfleet. A module that does not load is a file or library that the image
# lacks.
set -eu
USERS=$1
shift
cd /opt/capfleet
install -d -m 1777 node_modules/.cache node_modules/.cache/capfleet
for MODULE; do IMPORTS="${IMPORTS-}${IMPORTS+, }import('./$MODULE')"; done
LOAD="import('./src/shared/base/compile-cache.ts').then((cache) => { cache.useCompileCache(); return Promise.all([$IMPORTS]) })"
for USER in $USERS; do
  setpriv --reuid "$USER" --regid "$USER" --clear-groups sh -ec '
    node_modules/.bin/node --max-semi-space-size=16 --eval "$1"
    capfleet help health > /dev/null' sh "$LOAD"
done
chown -R root:root node_modules/.cache
chmod -R a+rX,go-w,-t .
