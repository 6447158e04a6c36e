#!/bin/bash
# check_skips.sh LOG LIST: fails if the output of ctest in LOG names a test that did not run, and LIST does not name
# it with a reason.
set -euo pipefail

readonly log=$1 list=$2

# A name without a reason is no entry.
allowed() { sed -nE 's/^([^#[:space:]]+)[[:space:]]+[^[:space:]].*/\1/p' "$list" | sort -u; }

# ctest lists them at its end: "<tab> 12 - name (Skipped)", and that of a test with a parameter with its value.
skipped() { sed -nE 's/ *# GetParam\(\) = .* \((Skipped|Disabled)\)$/ (Skipped)/; s/^\t *[0-9]+ - (.*) \((Skipped|Disabled)\)$/\1/p' "$log" | sort -u; }

unexpected=$(comm -23 <(skipped) <(allowed))
[[ -n $unexpected ]] || exit 0
printf 'Skipped in CI, and not on the list in %s:\n%s\n' "$list" "$unexpected" >&2
echo "Make the test run here, or add it to the list with the reason." >&2
exit 1
