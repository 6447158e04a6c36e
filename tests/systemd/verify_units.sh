#!/bin/bash
# verify_units.sh DIRECTORY: fails, and shows why, if systemd finds fault with a unit in DIRECTORY.
set -euo pipefail

units=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for unit in "$units"/*.service "$units"/*.socket "$units"/*.timer "$units"/*.path; do
  # The programs need not be installed for this: only the unit is looked at.
  sed -E 's#^(Exec[A-Za-z]*=)/usr/bin/spoor[^ ]*#\1/bin/true#' "$unit" >"$scratch/${unit##*/}"
done

# systemd-analyze reports an unknown setting, and exits with 0.
failed=0
output=$(SYSTEMD_UNIT_PATH="$scratch:" systemd-analyze verify --man=no --recursive-errors=no \
  "$scratch"/*.service "$scratch"/*.socket "$scratch"/*.timer "$scratch"/*.path 2>&1) || failed=1
if [[ -n $output || $failed -ne 0 ]]; then
  printf '%s\n' "$output" >&2
  exit 1
fi

for file in "$units"/*.sysusers.conf; do
  mkdir -p "$scratch/root/etc"
  if ! output=$(systemd-sysusers --root="$scratch/root" "$(realpath "$file")" 2>&1); then
    printf '%s\n' "$output" >&2
    exit 1
  fi
done
