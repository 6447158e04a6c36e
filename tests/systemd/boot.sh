#!/bin/bash
# boot.sh ROOT SCRIPT: boots systemd in the file system at ROOT, which is thrown away afterwards, runs SCRIPT there as
# root, and prints what it prints. Exits as SCRIPT does, and with 77 if systemd does not boot in a container here.
set -euo pipefail

root=$1
install -m 0755 "$2" "$root/under_systemd"
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

boot_log=$(mktemp)
trap 'rm -f "$boot_log"' EXIT
# spoor-watch needs the three system calls, which systemd-nspawn refuses otherwise.
failed=0
timeout --foreground --kill-after=10 400 systemd-nspawn --quiet --register=no --keep-unit --private-network \
  --machine="spoor-test-$$" --directory="$root" --link-journal=no --resolv-conf=off --timezone=off \
  --system-call-filter='fanotify_init fanotify_mark open_by_handle_at' \
  --console=pipe --boot systemd.unit=under-systemd.service </dev/null >"$boot_log" 2>&1 || failed=$?
if [[ ! -e $root/under_systemd.log ]]; then
  tail -n 20 "$boot_log"
  exit 77
fi
cat "$root/under_systemd.log"
((failed == 0)) || tail -n 20 "$boot_log"
exit "$failed"
