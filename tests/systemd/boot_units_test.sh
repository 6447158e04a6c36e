#!/bin/bash
# boot_units_test.sh BUILD: installs BUILD as docs/operations.md says, on a copy of this machine's file system in
# memory, boots systemd there, and runs under_systemd.sh in it. Exits with 77 where that can't be done.
set -euo pipefail

build=$(realpath "$1")
here=$(dirname "$(realpath "$0")")

skip() {
  printf '%s: Skipped\n%s\n' "$0" "$*"  # as GoogleTest says it
  exit 77
}

if [[ ${2:-} != unshared ]]; then
  ((EUID == 0)) || skip 'needs root'
  command -v systemd-nspawn >/dev/null || skip 'needs systemd-nspawn'
  unshare --mount true || skip 'mounts of its own are not allowed'
  # One at a time: containers that are not registered share a control group.
  mkdir -p /run/lock
  exec 9>/run/lock/spoor-boot-units
  flock --wait 600 9 || skip 'another one runs for too long'
  exec unshare --mount --propagation private "$0" "$build" unshared
fi

# All of it goes with the mounts, which go with this process.
scratch=$(mktemp -d)
trap 'umount -l "$scratch" || true; rmdir "$scratch"' EXIT
mount -t tmpfs -o size=1g spoor-test "$scratch" || skip 'no file system in memory'
mkdir "$scratch/changes" "$scratch/work" "$scratch/root"
mount -t overlay -o "lowerdir=/,upperdir=$scratch/changes,workdir=$scratch/work" spoor-test "$scratch/root" ||
  skip 'no file system that lies over another'
root=$scratch/root

# Nothing of this machine's own is to run there.
rm -rf "$root"/etc/systemd/system/*.wants "$root"/etc/systemd/system/spoor* "$root/etc/spoor" \
  "$root/var/lib/spoor" "$root/var/log/journal"
manifest=$build/install_manifest.txt  # of an installation that is none
if [[ -e $manifest ]]; then cp -p "$manifest" "$scratch/manifest"; fi
DESTDIR=$root cmake --install "$build" --prefix /usr >"$scratch/install.log"
if [[ -e $scratch/manifest ]]; then mv "$scratch/manifest" "$manifest"; else rm -f "$manifest"; fi
status=0
"$here/boot.sh" "$root" "$here/under_systemd.sh" 9>&- || status=$?
((status != 77)) || skip 'systemd does not boot in a container here'
exit "$status"
