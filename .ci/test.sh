#!/bin/sh
# All checks, then all tests. With arguments only the tests of these files, and of the set-up only
# what they need:
#   npm test -- test/src/query/query-time.test.ts test/native/engine/download/output_limit_test.cc
set -eu
cd "$(dirname "$0")/.."

if [ $# -eq 0 ]; then
  node .ci/setup.mjs --test
  PATH="$PWD/node_modules/.bin:$PATH"
  sh .ci/check.sh
  exec node .ci/run-tests.mjs 'test/**/*.test.ts'
fi

SUITES=
NEEDS=
for FILE; do
  shift
  case "$FILE" in
    *_test.cc)
      NEEDS=--engine-tests
      FOUND=$(sed -n 's/^TEST[_F]*(\([A-Za-z0-9_]*\),.*/\1.*/p' "$FILE" | sort -u | paste -sd:)
      if [ -z "$FOUND" ]; then echo "test: no test in $FILE" >&2; exit 2; fi
      SUITES="$SUITES${SUITES:+:}$FOUND" ;;
    *) set -- "$@" "$FILE" ;;
  esac
done
node .ci/setup.mjs $NEEDS
PATH="$PWD/node_modules/.bin:$PATH"
if [ -n "$SUITES" ]; then native/build-test/engine-tests/engine_tests --gtest_filter="$SUITES" --gtest_brief=1; fi
if [ $# -gt 0 ]; then exec node .ci/run-tests.mjs --once "$@"; fi
