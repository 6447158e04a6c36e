#!/bin/bash
# verify_units_test.sh DIRECTORY: fails if verify_units.sh lets a mistake in a copy of DIRECTORY pass.
set -euo pipefail

units=$1
verify=$(dirname "$0")/verify_units.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# must_fail WHAT FILE SED: WHAT is what the edit SED of FILE breaks.
must_fail() {
  rm -rf "$scratch/units"
  mkdir "$scratch/units"
  cp -L "$units"/* "$scratch/units"  # copies, even where the directory or a unit is a link
  sed -i "$3" "$scratch/units/$2"
  if "$verify" "$scratch/units" 2>/dev/null; then
    echo "verify_units.sh does not notice $1" >&2
    exit 1
  fi
}

must_fail 'an unknown setting' spoord.service 's/^ProtectClock=/ProtectClocks=/'
must_fail 'a value out of range' spoor-scan.service 's/^Nice=.*/Nice=999/'
must_fail 'a missing command' spoor-scan.service '/^ExecStart=/d'
must_fail 'a broken time' spoor-scan.timer 's/^OnCalendar=.*/OnCalendar=often/'
must_fail 'an unknown setting of a template' spoor-backup@.service 's/^ProtectClock=/ProtectClocks=/'
must_fail 'a broken address' spoord.socket 's/^ListenStream=127.*/ListenStream=nowhere/'
must_fail 'a broken user file' spoor.sysusers.conf 's/^u spoor/x spoor/'
