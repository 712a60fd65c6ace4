#!/bin/sh
# Checks format, lint, regular expressions and types. C++ warnings are errors of the build itself
# (native/CMakeLists.txt).
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"
echo 'check: format and lint (TypeScript)'
biome check --error-on-warnings .
echo 'check: regular expressions'
node .ci/check-expressions.mjs
echo 'check: types'
node .ci/console-types.mjs
tsc -p .
echo 'check: format (C++)'
git ls-files --cached --others --exclude-standard '*.cc' '*.h' | xargs clang-format --dry-run -Werror
