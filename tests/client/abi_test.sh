#!/bin/bash
# abi_test.sh LIBRARY [--record]: whether the interface of the library, its functions and the types of spoor.h, is the
# recorded one. After an addition, --record it; after any other change, the library needs a new version.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

recorded=client/libspoor.abi
found=$(mktemp)
trap 'rm -f "$found"' EXIT
abidw --suppressions tests/client/libspoor.abignore --exported-interfaces-only --drop-private-types --headers-dir client \
  --no-corpus-path --no-comp-dir-path --no-show-locs --out-file "$found" "$1"
sed -i "s/ path='[^']*'//" "$found"  # of the sources, which depends on the folder of the build
[[ ${2:-} != --record ]] || cp "$found" "$recorded"
diff -u "$recorded" "$found"
