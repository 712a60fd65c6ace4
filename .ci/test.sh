#!/bin/sh
# All checks, then all tests except the nightly ones. With files only their tests, after setting up only what they
# need:
#   npm test -- test/src/shared/query/time/query-time.test.ts test/native/engine/download/output_limit_test.cc
# --quick: all checks, and tests that start no process. --night: tests that take too long for each change.
set -eu
cd "$(dirname "$0")/.."

if [ $# -eq 0 ]; then
  node .ci/setup.mjs --test
  PATH="$PWD/node_modules/.bin:$PATH"
  sh .ci/check.sh
  exec node .ci/run-tests.mjs 'test/**/*.test.ts'
fi

case "$1" in
  --quick)
    node .ci/setup.mjs --engine-tests
    # Those files need nothing specific: any that does starts processes.
    node .ci/setup.mjs --test-files
    PATH="$PWD/node_modules/.bin:$PATH"
    sh .ci/check.sh
    # A share of the engine's tests on each processor.
    TOTAL=$(nproc)
    SHARDS=
    for INDEX in $(seq 0 $((TOTAL - 1))); do
      CAPFLEET_TURNS=5 GTEST_TOTAL_SHARDS=$TOTAL GTEST_SHARD_INDEX=$INDEX \
        native/build-test/engine-tests/engine_tests --gtest_brief=1 &
      SHARDS="$SHARDS $!"
    done
    for SHARD in $SHARDS; do wait "$SHARD"; done
    exec node .ci/run-tests.mjs --quick ;;
  --night)
    node .ci/setup.mjs --test
    PATH="$PWD/node_modules/.bin:$PATH"
    exec node .ci/night.mjs ;;
esac

SUITES=
for FILE; do
  shift
  case "$FILE" in
    *_test.cc)
      FOUND=$(sed -n 's/^TEST[_F]*(\([A-Za-z0-9_]*\),.*/\1.*/p' "$FILE" | sort -u | paste -sd:)
      if [ -z "$FOUND" ]; then echo "test: no test in $FILE" >&2; exit 2; fi
      SUITES="$SUITES${SUITES:+:}$FOUND" ;;
    *) set -- "$@" "$FILE" ;;
  esac
done
if [ -n "$SUITES" ]; then
  node .ci/setup.mjs --engine-tests
  native/build-test/engine-tests/engine_tests --gtest_filter="$SUITES" --gtest_brief=1
fi
if [ $# -gt 0 ]; then
  node .ci/setup.mjs --test-files "$@"
  PATH="$PWD/node_modules/.bin:$PATH"
  exec node .ci/run-tests.mjs --once "$@"
fi
