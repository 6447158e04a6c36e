#!/bin/bash
# The daemon, the scanner and spoor-watch under a real systemd: boot_units_test.sh runs this in a machine that may be
# thrown away.
set -euo pipefail

url=http://127.0.0.1:7420
socket=/run/spoor/spoor.sock

step() { echo "--- $*"; }
fail() {
  echo "FAILED: $*"
  systemctl status --no-pager --lines=0 spoord spoor-scan spoor-watch || true
  journalctl --no-pager -u spoord -u spoord.socket -u spoor-scan -u spoor-watch -u 'spoor-backup@*' | tail -n 40
  exit 1
}
trap 'fail "line $LINENO"' ERR

# until_true WHAT COMMAND...: waits for what has to come. The unit's time limit ends it where it does not.
until_true() {
  until "${@:2}"; do sleep 0.1; done
  echo "$1"
}
# shellcheck disable=SC2053  # a pattern
shows() { [[ $(systemctl show --property="$1" --value "$2") == $3 ]]; }
# (No grep -q: what is before it in the pipe must be able to write all it has.)
logged() { journalctl --no-pager -u "$1" "${@:3}" | grep -- "$2" >/dev/null; }
mark() { curl -sS -o /dev/null -w '%{http_code}\n' -H 'Content-Type: text/plain' --data-binary "$@"; }
is_dirty() { curl -s --unix-socket "$socket" "http://spoor/v1/dirty?path=$1" | grep '"dirty":true' >/dev/null; }
configure() {
  cat >/etc/spoor/spoor.json <<END
{
  "node": {"name": "node1"},
  "drives": ["/mnt/spoor-disk", "/mnt/spoor-watched"],
  "watch": {"drives": [${watched:-}]},
  "listen": [{"address": "127.0.0.1", "port": 7420}, {"unix": "$socket"$1}],
  "auth": {"tokens": [{"name": "photos", "role": "${2:-mark}", "file": "credential:photos"}]},
  "limits": {"threads": 2}
}
END
}

step 'installing, as docs/operations.md says'
systemd-sysusers
install -d /etc/spoor
groupadd --force spoor-test-apps
install -d /mnt/spoor-disk/photos/2026
echo picture >/mnt/spoor-disk/photos/2026/1.jpg
install -d /mnt/spoor-watched
mount -t tmpfs spoor-watched /mnt/spoor-watched  # the kernel does not report changes on the root's file system
install -d -o spoor -g spoor -m 0750 /mnt/spoor-disk/.spoor /mnt/spoor-watched/.spoor
install -d -m 0700 /etc/spoor/tokens
(umask 077 && head -c 32 /dev/urandom | base64 >/etc/spoor/tokens/photos)
install -d /etc/systemd/system/spoord.service.d
printf '[Service]\nLoadCredential=photos:/etc/spoor/tokens/photos\nRestartSec=100ms\n' \
  >/etc/systemd/system/spoord.service.d/test.conf
install -d /etc/systemd/system/spoor-scan.service.d
printf '[Unit]\nStartLimitIntervalSec=0\n' >/etc/systemd/system/spoor-scan.service.d/test.conf
configure ', "group": "spoor-test-apps", "mode": "0620"'
spoord --check
systemctl daemon-reload

step 'a socket for a group the daemon is not in: refused, and said'
systemctl start spoord && fail 'it started'
until_true 'said' logged spoord "user must be a member of" --priority=err
systemctl stop spoord
usermod --append --groups spoor-test-apps spoor

step 'started once it serves'
systemctl start spoord
[[ $(stat -c '%U:%G %a' "$socket") == 'spoor:spoor-test-apps 620' ]] || fail "$(stat "$socket")"
shows StatusText spoord 'cycle 1, no peers, journal ok'
token=(-H "Authorization: Bearer $(</etc/spoor/tokens/photos)")
[[ $(mark photos/2026 "$url/v1/marks") == 401 ]]
[[ $(mark photos/2026 "${token[@]}" "$url/v1/marks") == 200 ]]

step 'a scan'
systemctl start spoor-scan
spoor usage photos | grep 2026 >/dev/null
systemctl start spoor-scan.timer

step 'a reload'
configure ', "group": "spoor-test-apps", "mode": "0600"' read
systemctl reload spoord
until_true 'what needs a restart is a warning' logged spoord 'needs a restart: listen' --priority=warning
[[ $(mark photos/2026 "${token[@]}" "$url/v1/marks") == 403 ]]
configure ', "group": "spoor-test-apps", "mode": "0620"'
systemctl restart spoord

step 'a crash'
[[ $(mark before/crash "${token[@]}" "$url/v1/marks") == 200 ]]
systemctl kill --signal=KILL spoord
until_true 'started again' shows NRestarts spoord 1
until_true 'serves again' is_dirty before/crash

step 'a backup by its timer: owners, rights and names are those of the drive'
install -d -m 0700 /etc/spoor/backup
echo "COMMAND=\"spoor-rsync /mnt/spoor-disk '/srv/the copy' disk\"" >/etc/spoor/backup/disk.conf
install -o 1000 -g 1001 -m 4750 /bin/true /mnt/spoor-disk/photos/program
ln -s /etc/passwd /mnt/spoor-disk/photos/link
[[ $(mark photos "${token[@]}" "$url/v1/marks") == 200 ]]
systemctl start spoor-scan
systemctl enable --now spoor-backup@disk.timer
systemctl start spoor-backup@disk
[[ -z $(rsync -acni --delete --exclude=/.spoor /mnt/spoor-disk/ '/srv/the copy/') ]]
until_true 'its summary is logged' logged spoor-backup@disk "removed 0 in .*'disk' has read up to scan"

step 'a backup that fails, or has no command: a failed unit'
fails() { systemctl start spoor-backup@disk 2>/dev/null && fail 'it did not'; systemctl is-failed spoor-backup@disk; }
echo 'COMMAND="spoor-rsync /mnt/spoor-disk /proc/nowhere disk"' >/etc/spoor/backup/disk.conf
fails
echo 'PASSWORD=secret' >/etc/spoor/backup/disk.conf
fails
journalctl --sync
logged spoor-backup@disk secret && fail 'the environment is logged'
rm /etc/spoor/backup/disk.conf
fails

step 'a loop that stands still'
printf 'WatchdogSec=5s\nWatchdogSignal=SIGKILL\n' >>/etc/systemd/system/spoord.service.d/test.conf
systemctl daemon-reload
systemctl restart spoord
systemctl kill --signal=STOP spoord
until_true 'ended by the watchdog' logged spoord "Failed with result 'watchdog'"
until_true 'serves again' is_dirty before/crash

step 'restarts on sockets that systemd holds, under load'
sed -i '/^Watchdog/d' /etc/systemd/system/spoord.service.d/test.conf
systemctl daemon-reload
systemctl stop spoord
systemctl start spoord.socket
load() {  # NAME CURL-ARGUMENTS...: until it is told to end
  local number
  for ((number = 1;; ++number)); do
    [[ ! -e /end ]] || return 0
    echo "$(mark "load/$1/$number" "${@:2}") load/$1/$number"
  done >"/load.$1" 2>&1
}
came() { (($(cat /load.* | wc -l) >= $1)); }
load tcp "${token[@]}" "$url/v1/marks" &
load socket --unix-socket "$socket" http://spoor/v1/marks &
for restart in 1 2 3 4 5; do
  until_true "$((restart * 100)) marks" came $((restart * 100))
  systemctl restart spoord
done
touch /end
wait
grep -hv '^200 ' /load.* && fail 'a request was refused'
while read -r _ path; do is_dirty "$path" || fail "$path is lost"; done < <(cat /load.*)
echo "$(cat /load.* | wc -l) marks"

step 'the kernel reports changes, and spoor-watch marks them'
capabilities() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$(systemctl show --property=MainPID --value "$2")/status"; }
expect_gaps() {  # COUNT: the scans that walked the drive in full, and the one that runs now
  systemctl start spoor-scan
  journalctl --sync
  (($(journalctl --no-pager -u spoor-scan | grep -c 'walked in full: /mnt/spoor-watched') == $1))
}
has_usage() { spoor usage "$1" >/dev/null; }
watched='"/mnt/spoor-watched"'
configure ', "group": "spoor-test-apps", "mode": "0620"'
systemctl reload spoord
not_watched() { shows StatusText spoord 'cycle*errors: /mnt/spoor-watched is not watched*'; }
until_true 'it is not watched, and said' not_watched
systemctl enable --now spoor-watch
until_true 'watched' shows StatusText spoord 'cycle*, no peers, journal ok'
shows StatusText spoor-watch 'watching 1 of 1 drive'
# CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH.
[[ $(capabilities CapEff spoor-watch) == 0000000000200004 ]]
[[ $(capabilities CapBnd spoor-watch) == 0000000000200004 ]]
[[ $(capabilities CapEff spoord) == 0000000000000000 ]]
[[ $(capabilities CapBnd spoord) == 0000000000000000 ]]
expect_gaps 1
mkdir -p /mnt/spoor-watched/watched/deep
expect_gaps 1
has_usage watched/deep

step 'a restart of spoor-watch, and a crash: no gap'
systemctl restart spoor-watch
mkdir -p /mnt/spoor-watched/after-restart/deep
expect_gaps 1
has_usage after-restart/deep
sleep 1  # the snapshot of the new cycle is written to the drive: no event is in flight afterwards
systemctl kill --signal=KILL spoor-watch
mkdir -p /mnt/spoor-watched/after-crash/deep
until_true 'started again' shows NRestarts spoor-watch 1
expect_gaps 1
has_usage after-crash/deep

step 'a spoor-watch that hangs: ended by its watchdog, and no gap'
install -d /etc/systemd/system/spoor-watch.service.d
printf '[Service]\nWatchdogSec=4s\n' >/etc/systemd/system/spoor-watch.service.d/test.conf
systemctl daemon-reload
systemctl restart spoor-watch
systemctl kill --signal=STOP spoor-watch
mkdir -p /mnt/spoor-watched/while-hanging/deep
until_true 'ended by the watchdog' logged spoor-watch "Failed with result 'watchdog'"
until_true 'started again' shows NRestarts spoor-watch 1
expect_gaps 1
has_usage while-hanging/deep

step 'a stop and a start of spoor-watch: one gap'
systemctl stop spoor-watch
mkdir /mnt/spoor-watched/while-stopped
systemctl start spoor-watch
expect_gaps 2
has_usage while-stopped
expect_gaps 2

step 'a watched drive can be unmounted'
umount /mnt/spoor-watched
grep --no-messages ' /mnt/spoor-watched ' /proc/[0-9]*/mountinfo && fail 'it is still mounted in a service'
until_true 'noticed' logged spoor-watch '/mnt/spoor-watched carries no identity' --priority=err
systemctl stop spoor-watch
shows Result spoor-watch success

step 'stopped, and nothing failed'
systemctl stop spoord.socket spoord
shows Result spoord success
