#!/bin/bash
# run_tests.sh BUILD [SCRIPT [ARGUMENT...]]: the tests of the page, or another script, with the programs of that build and
# Debian's Chromium. Their packages are installed there; screenshots are left in tests/page/screenshots.
set -euo pipefail

source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "$1" && pwd)
work=$build/tests/page
mkdir -p "$work"

if ! cmp -s "$source/package-lock.json" "$work/package-lock.json" || [[ ! -d $work/node_modules ]]; then
  rm -f "$work/package-lock.json"
  installing=$(mktemp -d)
  trap 'rm -rf "$installing"' EXIT
  cp "$source/package.json" "$source/package-lock.json" "$installing"
  npm ci --prefix "$installing" --ignore-scripts --no-audit --no-fund --loglevel=error
  rm -rf "$work/node_modules"
  cp -r "$installing/node_modules" "$installing/package.json" "$work"
  cp "$source/package-lock.json" "$work"  # last: all is there
fi

export SPOORD=$build/spoord SPOOR=$build/spoor PACKAGES=$work SCREENSHOTS=$work/screenshots
if (($# > 1)); then exec node "${@:2}"; fi
exec node --test "$source/page_test.mjs"
