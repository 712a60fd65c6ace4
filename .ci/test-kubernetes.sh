#!/bin/sh
# Builds the images, runs them, and runs the chart, on simulated nodes and on a real one. Needs root. With arguments
# only these files:
#   npm run test:kubernetes -- test/kubernetes/real-node.cluster.ts
# NODE_LOGS=folder keeps the logs of the real node's programs.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"
if [ "$(id -u)" != 0 ]; then echo 'test:kubernetes: images and a node can only be run by root' >&2; exit 1; fi
if [ ! -x .tools/kubelet ]; then
  echo 'test:kubernetes: Kubernetes was not built; `node .ci/setup.mjs --kubernetes` builds it, or says why not' >&2
  exit 1
fi
node test/images/build-images.ts
IMAGES=$(ls -d "$PWD"/.tools/images/*.tar)
export IMAGES
if [ $# -eq 0 ]; then set -- test/images/*.cluster.ts test/kubernetes/*.cluster.ts; fi
STATUS=0
for FILE; do
  # A real node is isolated from this machine: its tests run inside it.
  case "$FILE" in *real-node*) NODE=test/kubernetes/with-real-node.sh ;; *) NODE= ;; esac
  nice -n 5 ${NODE:+sh "$NODE"} node --import ./test/support/file-limit.ts --test --test-reporter=spec --test-timeout=900000 "$FILE" || STATUS=1
done
exit "$STATUS"
