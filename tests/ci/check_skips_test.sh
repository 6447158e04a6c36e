#!/bin/bash
# check_skips_test.sh: fails if check_skips.sh lets a skip pass that no list names, or refuses one that a list names.
set -euo pipefail

check=$(dirname "$0")/check_skips.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# In ctest's own words: what it writes where a test is skipped.
cat >"$work/CTestTestfile.cmake" <<'CTEST'
add_test(passes true)
add_test(skips_a sh -c "exit 77")
add_test(skips_b sh -c "exit 77")
add_test("All/skips_c/x  # GetParam() = \"x\"" sh -c "exit 77")
set_tests_properties(skips_a skips_b "All/skips_c/x  # GetParam() = \"x\"" PROPERTIES SKIP_RETURN_CODE 77)
CTEST
ctest --test-dir "$work" -E GetParam >"$work/both.log"
ctest --test-dir "$work" -R GetParam >"$work/parameter.log"
ctest --test-dir "$work" -R passes >"$work/none.log"

expect() {  # EXIT CODE, LOG, LIST
  local code=0
  printf '%s\n' "$3" >"$work/list"
  "$check" "$work/$2" "$work/list" 2>"$work/err" || code=$?
  if [[ $code != "$1" ]]; then
    echo "check_skips.sh of $2 with the list '$3' ends with $code, not $1: $(cat "$work/err")" >&2
    exit 1
  fi
}

expect 1 both.log ''
expect 1 both.log 'skips_a needs what is not here'
grep -q '^skips_b$' "$work/err"
expect 1 both.log $'skips_a needs what is not here\nskips_b'
expect 1 both.log $'skips_a needs what is not here\n# skips_b needs it too'
expect 0 both.log $'# a comment\nskips_a needs what is not here\nskips_b needs it too'
expect 0 none.log ''
expect 1 parameter.log ''
expect 0 parameter.log 'All/skips_c/x needs what is not here'
