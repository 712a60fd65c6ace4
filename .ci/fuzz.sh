#!/bin/sh
# Runs one fuzz target of test/fuzz for some seconds, starting with its corpus there:
#   npm run fuzz -- decapsulation 60
# Inputs that reach new code go to native/build-fuzz/corpus/<target>, a failing one to the folder next to it; add a
# failing one to test/fuzz/corpus/<target> along with the fix. Without arguments it lists the targets.
set -eu
cd "$(dirname "$0")/.."
TARGETS=$(sed -n 's/^capfleet_fuzz_target(\([a-z0-9_]*\).*/\1/p' test/fuzz/CMakeLists.txt | tr '\n' ' ')
if [ $# -ne 2 ]; then
  echo "usage: npm run fuzz -- <target> <seconds>; targets: $TARGETS" >&2
  exit 2
fi
TARGET=$1
SECONDS_LIMIT=$2
case " $TARGETS" in
  *" $TARGET "*) ;;
  *) echo "fuzz: no target $TARGET; there are: $TARGETS" >&2; exit 2 ;;
esac

BUILD=native/build-fuzz
if [ ! -e $BUILD/Makefile ]; then
  cmake -S native -B $BUILD -DCAPFLEET_FUZZ=ON \
    -DCMAKE_C_COMPILER=clang-14 -DCMAKE_CXX_COMPILER=clang++-14 >&2
fi
cmake --build $BUILD --parallel 2 --target "${TARGET}_fuzz" >&2

mkdir -p "$BUILD/corpus/$TARGET" "$BUILD/failed"
exec "$BUILD/fuzz/${TARGET}_fuzz" -max_total_time="$SECONDS_LIMIT" -print_final_stats=1 -timeout=10 \
  -artifact_prefix="$BUILD/failed/$TARGET-" "$BUILD/corpus/$TARGET" "test/fuzz/corpus/$TARGET"
