#!/bin/bash
# The packages on a machine of their own, from the installation to the purge: package_test.sh runs this in a clean
# Debian that may be thrown away. /packages/before and /packages/now hold two versions; the first is installed.
set -euo pipefail

socket=/run/spoor/spoor.sock

step() { echo "--- $*"; }
fail() {
  echo "FAILED: $*"
  systemctl status --no-pager --lines=0 spoord spoor-scan spoor-watch || true
  journalctl --no-pager -u spoord -u spoord.socket -u spoor-scan -u spoor-watch | tail -n 40
  exit 1
}
trap 'fail "line $LINENO"' ERR
export DEBIAN_FRONTEND=noninteractive

# until_true COMMAND...: waits for what has to come. The unit's time limit ends it where it does not.
until_true() { until "$@"; do sleep 0.1; done; }
has_usage() { spoor usage "$1" >/dev/null; }
is_dirty() { curl -s --unix-socket "$socket" "http://spoor/v1/dirty?path=$1" | grep '"dirty":true' >/dev/null; }
mark() { curl -sS -o /dev/null -w '%{http_code}\n' --unix-socket "$socket" --data-binary "$1" -H 'Content-Type: text/plain' http://spoor/v1/marks; }

step 'installed: not started, not enabled'
[[ $(systemctl is-active spoord spoor-watch spoor-publish spoor-scan.timer spoor-scan.path spoord.socket | sort -u) == inactive ]]
[[ $(systemctl is-enabled spoord spoor-watch spoor-publish spoor-scan.timer spoor-scan.path spoord.socket | sort -u) == disabled ]]
id spoor

step 'the drive, which is one line, and the start'
mkdir -p /srv/data
mount -t tmpfs data /srv/data  # the kernel does not report changes on the root's file system
mkdir -p /srv/data/photos/2026
echo picture >/srv/data/photos/2026/1.jpg
spoor setup --drive /srv/data --no-watch
[[ $(stat -c %U /srv/data/.spoor) == spoor ]]
runuser -u spoor -- spoord --check

step 'a mark, and the scan of the timer'
systemctl start spoor-scan
has_usage photos/2026
echo more >/srv/data/photos/2026/2.jpg
spoor mark photos/2026
sed -i 's/^OnCalendar=.*/OnCalendar=*:*:*/; s/^RandomizedDelaySec=.*//' /lib/systemd/system/spoor-scan.timer
systemctl daemon-reload
systemctl restart spoor-scan.timer
two_files() { spoor usage --json photos/2026 | tr -d ' \n' | grep '"files":2,' >/dev/null; }
until_true two_files
systemctl stop spoor-scan.timer

step 'a scan is started by a request'
scans() { spoor scans --json | grep -c '"scan":'; }
before=$(scans)
# More of them than systemd starts a unit by default, within 10 s.
for number in 1 2 3 4 5 6 7; do
  [[ $(curl -sS -o /started -w '%{http_code}' --unix-socket /run/spoor/spoor.sock -X POST http://localhost/v1/scans) == 200 ]]
  one_more() { (($(scans) >= before + number)); }
  until_true one_more
done
[[ $(systemctl is-active spoor-scan.path) == active ]]
[[ ! -e /var/lib/spoor/scan.request ]]

step 'the recipes are commands'
for recipe in borg index nextcloud rclone restic rsync; do
  "spoor-$recipe" --help >/help
  grep -q "^  spoor-$recipe " /help
  [[ -e /usr/share/man/man1/spoor-$recipe.1.gz || -e /etc/dpkg/dpkg.cfg.d/excludes ]]
done

step 'a backup by its timer, a restore of one path, and a backup that fails'
install -d -m 0700 /etc/spoor/backup
printf 'COMMAND="spoor-restic backup /srv/data data"\nRESTIC_REPOSITORY=/srv/backup\nRESTIC_PASSWORD=secret\n' \
  >/etc/spoor/backup/data.conf
export RESTIC_REPOSITORY=/srv/backup RESTIC_PASSWORD=secret
spoor-restic backup --dry-run /srv/data data && fail 'there is no repository'
restic init
spoor-restic backup --dry-run /srv/data data
spoor-restic list data && fail 'a dry run has made a backup'
systemctl enable --now spoor-backup@data.timer
systemctl start spoor-backup@data
spoor-restic restore --at "$(spoor-restic list data | cut -d ' ' -f 1)" --path photos/2026/2.jpg /srv/restored data
cmp /srv/data/photos/2026/2.jpg /srv/restored/photos/2026/2.jpg
mv /srv/backup /srv/moved
systemctl start spoor-backup@data && fail 'there is no repository'
[[ $(systemctl is-failed spoor-backup@data) == failed ]]

step 'a user without credentials may mark, and nothing else'
# as_nobody METHOD PATH [BODY]: prints the status.
as_nobody() {
  setpriv --reuid=nobody --regid=nogroup --clear-groups curl -sS -o /dev/null -w '%{http_code}' -X "$1" \
    -H 'Content-Type: text/plain' ${3:+--data-binary "$3"} "http://127.0.0.1:7420$2"
}
[[ $(as_nobody POST /v1/marks by/nobody) == 200 ]]
is_dirty by/nobody
[[ $(as_nobody GET /livez) == 200 ]]
[[ $(as_nobody GET /readyz) == 200 ]]
[[ $(as_nobody GET /v1/usage) == 401 ]]
[[ $(as_nobody POST /v1/snapshot) == 401 ]]
[[ $(as_nobody POST '/v1/drives/accept?path=/srv/data') == 401 ]]
for command in status usage; do
  advice=$(setpriv --reuid=nobody --regid=nogroup --clear-groups spoor "$command" 2>&1) && fail "nobody may read: $command"
  [[ $advice == *'join the group spoor'* ]]
done

step 'an absolute path is marked below its drive, or refused'
spoor mark /srv/data/by/path
is_dirty by/path
spoor mark /srv/photos && fail 'it is on no drive'

step 'a mark by the client library'
python3 -c '
import spoor
with spoor.Client() as client:
    client.mark("by/python")
    assert client.flush() is spoor.Result.OK
'
is_dirty by/python

step 'what the kernel reports'
sed -i 's#^  "drives"#  "watch": {"drives": "all"},\n&#' /etc/spoor/spoor.json
spoord --check
systemctl restart spoord
systemctl enable --now spoor-watch
mkdir -p /srv/data/watched/deep
systemctl start spoor-scan
has_usage watched/deep

step 'what scans find is published, by a service without rights'
python3 - <<'END' >/collector.log 2>&1 &
import http.server
class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        with open("/collected", "ab") as file:
            file.write(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", 8080), Collector).serve_forever()
END
collector=$!
sed -i 's#^  "drives"#  "publish": {"interval": "100ms", "sinks": [{"name": "hook", "url": "http://127.0.0.1:8080/"}]},\n&#' /etc/spoor/spoor.json
spoor-publish --check
systemctl enable --now spoor-publish
until_true grep -qs 'spoor.scan' /collected
grep -q '"type":"spoor.reset"' /collected
grep -q '"path":"watched/deep"' /collected
spoor changes --consumers | grep -q '^publish:hook .* 0 '
kill "$collector"

step 'what the daemon and the scans keep is not readable by others'
open_to_others=$(find /var/lib/spoor /srv/data/.spoor ! -type l -perm /007)
[[ -z $open_to_others ]] || fail "$open_to_others"

step 'an upgrade under load, on sockets that systemd holds'
systemctl stop spoord
systemctl enable --now spoord.socket
systemctl start spoord
gaps() { journalctl --sync; journalctl --no-pager -u spoor-scan | grep -c 'walked in full' || true; }
before=$(gaps)
load() {
  local number
  for ((number = 1;; ++number)); do
    [[ ! -e /end ]] || return 0
    echo "$(mark "load/$number") load/$number"
  done >/load 2>&1
}
load &
until_true grep -q 'load/100$' /load
apt-get install -y -q /packages/now/*.deb
came=$(wc -l </load)
until_true grep -q "load/$((came + 100))\$" /load
touch /end
wait
grep -v '^200 ' /load && fail 'a request was refused'
while read -r _ path; do is_dirty "$path" || fail "$path is lost"; done </load
[[ $(dpkg-query -W -f '${Version}' spoor) == "$(cat /packages/now/version)" ]]
[[ $(systemctl is-active spoord spoor-watch spoor-publish spoord.socket | sort -u) == active ]]
[[ $(systemctl show --property=NRestarts --value spoord) == 0 ]]
mkdir -p /srv/data/after-upgrade/deep
until_true is_dirty after-upgrade
systemctl start spoor-scan
has_usage after-upgrade/deep
[[ $(gaps) == "$before" ]] || fail 'the upgrade led to a walk of the whole drive'
echo "$(wc -l </load) marks during it"

step 'removed: it runs no more, and nothing is lost'
apt-get remove -y -q spoor spoor-watch spoor-publish spoor-recipes
[[ $(pgrep -c spoor || true) == 0 ]]
[[ $(systemctl is-active spoor-backup@data.timer) == inactive ]]
[[ -e /var/lib/spoor/scan.db && -e /etc/spoor/spoor.json ]]
apt-get install -y -q /packages/now/*.deb
systemctl start spoord
systemctl start spoor-scan
has_usage after-upgrade/deep
[[ $(gaps) == $((before + 1)) ]] || fail 'a drive that is not watched was not walked'
systemctl start spoor-watch
systemctl start spoor-scan
before=$(gaps)
mkdir -p /srv/data/after-installation/deep
systemctl start spoor-scan
has_usage after-installation/deep
[[ $(gaps) == "$before" ]] || fail 'a drive that is watched again was walked'

step 'purged: nothing is left but the user, and what is on the drives'
rm -r /etc/spoor/backup  # the operator's own
apt-get purge -y -q spoor spoor-watch spoor-publish spoor-recipes libspoor1 libspoor-dev python3-spoor
left=$(find / -xdev -name '*spoor*' ! -path '/packages/*' ! -path '/proc/*' ! -path '/sys/*' ! -path '/srv/data/*' \
  ! -path '/var/log/*' ! -path '/var/cache/apt/*' ! -path '/tmp/*')
[[ -z $left ]] || fail "$left"
id spoor
[[ -e /srv/data/.spoor/.tracker.bin ]]
