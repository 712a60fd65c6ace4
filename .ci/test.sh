#!/bin/sh
# All checks, then all tests; arguments choose test files instead of all.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"
sh .ci/check.sh
if [ $# -eq 0 ]; then set -- 'test/**/*.test.ts'; fi
exec node --test --test-reporter=spec --test-concurrency=2 "$@"
