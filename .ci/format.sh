#!/bin/sh
# Formats every source file in place.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"
biome check --write .
git ls-files --cached --others --exclude-standard '*.cc' '*.h' | xargs clang-format -i
