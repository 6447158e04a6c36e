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
install -m 0755 "$here/under_systemd.sh" "$root/under_systemd"
cat >"$root/etc/systemd/system/under-systemd.service" <<'END'
[Unit]
After=basic.target
Requires=basic.target
SuccessAction=exit
FailureAction=exit
[Service]
Type=oneshot
ExecStart=/under_systemd
StandardOutput=append:/under_systemd.log
StandardError=append:/under_systemd.log
TimeoutStartSec=5min
END

# spoor-watch needs the three system calls, which systemd-nspawn refuses otherwise.
failed=0
timeout --foreground --kill-after=10 400 systemd-nspawn --quiet --register=no --keep-unit --private-network \
  --machine="spoor-test-$$" --directory="$root" --link-journal=no --resolv-conf=off --timezone=off \
  --system-call-filter='fanotify_init fanotify_mark open_by_handle_at' \
  --console=pipe --boot systemd.unit=under-systemd.service </dev/null >"$scratch/boot.log" 2>&1 9>&- || failed=$?
if [[ ! -e $root/under_systemd.log ]]; then
  tail -n 20 "$scratch/boot.log"
  skip 'systemd does not boot in a container here'
fi
cat "$root/under_systemd.log"
((failed == 0)) || tail -n 20 "$scratch/boot.log"
exit "$failed"
