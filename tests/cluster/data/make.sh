#!/bin/bash
# Makes clean.img.gz and crash.img.gz in a directory: the disk of four nodes, as the programs of a commit leave it.
#
#   make.sh DIRECTORY SPOORD SPOOR   (as root: it mounts, in namespaces of its own)
#
# The file system is kept, and not the files alone: scan.db has inode numbers and times of creation in it, which no
# copy of a tree keeps. All paths and ports are fixed; the test has the same in namespaces of its own.
set -euo pipefail

# The disk is mounted here, in the test as well.
disk=/media

die() {
  printf '%s: %s\n' "$0" "$1" >&2
  exit 1
}

spoor_of() { "$spoor" --config "$disk/$1.json" "${@:2}"; }

# await TEXT FILE: until a program has logged it.
await() {
  local try
  for ((try = 0; try < 100; ++try)); do
    if grep -qsF -- "$1" "$2"; then return; fi
    sleep 0.1
  done
  die "no '$1' in $2: $(cat "$2")"
}

start() {
  "$spoord" --config "$disk/$1.json" 2> "$scratch/$1.log" &
  pids[$1]=$!
  await "listening on unix:" "$scratch/$1.log"
}

# stop NODE SIGNAL
stop() {
  kill "-$2" "${pids[$1]}"
  wait "${pids[$1]}" 2> /dev/null || [[ $2 == KILL ]] || die "$1 did not stop cleanly: $(cat "$scratch/$1.log")"
}

# The DNS lists these nodes.
publish() {
  local node records=()
  for node; do records+=("--srv-host=_spoor._tcp.test,node.test,742${node#n}"); done
  if [[ -v pids[dns] ]]; then stop dns TERM; fi
  dnsmasq --no-daemon --conf-file=/dev/null --no-resolv --no-hosts --local=/test/ --listen-address=127.0.0.1 \
    --bind-interfaces --port=5353 --host-record=node.test,127.0.0.1 "${records[@]}" 2> "$scratch/dns.log" &
  pids[dns]=$!
  await "started" "$scratch/dns.log"
}

configure() { # configure NODE NUMBER PEERS
  mkdir "$disk/$1-drive"
  cat > "$disk/$1.json" << END
{"node": {"name": "$1", "cluster": "test", "data_dir": "$disk/$1-data"}, "drives": ["$disk/$1-drive"],
 "listen": [{"address": "127.0.0.1", "port": 742$2, "insecure": true}, {"unix": "$disk/$1.sock"}], "peers": $3,
 "scan": {"min_cycle_age": "1ms", "file_feed": true}}
END
}

# change NODE KIND DIRECTORY: changes a file in it on the drive of n0, and marks it on that node.
change() {
  local marked=$3
  if [[ $2 == file ]]; then marked+=/file; fi
  echo "more" >> "$disk/n0-drive/$3/file"
  spoor_of "$1" mark --kind "$2" "$marked" > /dev/null
}

# Exit code 3: a part of the cluster does not respond.
scan() { # scan CODE
  local code=0
  sleep 0.1 # a step of the file system's times: each change is reported once
  spoor_of n0 scan --json > "$scratch/scan.json" || code=$?
  [[ $code == "$1" ]] || die "the scan ended with $code: $(cat "$scratch/scan.json")"
}

# report NAME ARGUMENT...: what n0 prints, for the test to compare.
report() { spoor_of n0 "${@:2}" > "$disk/reported/$1.json"; }

write_history() { # write_history SIGNAL: how the daemons end
  local name
  for name in n0 n1 n2; do
    configure "$name" "${name#n}" '{"dns": ["srv:_spoor._tcp.test"], "dns_servers": ["127.0.0.1:5353"]}'
  done
  # A confirmed registration is good for a century: the test may run at any time.
  configure e0 3 '{"etcd": {"endpoints": ["http://127.0.0.1:2379"], "url": "http://127.0.0.1:7423", "forget_after": "876000h"}}'
  mkdir -p "$disk"/reported "$disk"/n0-drive/bucket/{a,b,c,d,e,f}/{x,y}
  for name in "$disk"/n0-drive/bucket/*/*; do echo "$name" > "$name/file"; done

  etcd --data-dir "$scratch/etcd" --listen-client-urls http://127.0.0.1:2379 \
    --advertise-client-urls http://127.0.0.1:2379 2> "$scratch/etcd.log" &
  pids[etcd]=$!
  await "ready to serve client requests" "$scratch/etcd.log"
  start e0
  await "registered in etcd" "$scratch/e0.log"

  publish n0 n1 n2
  for name in n0 n1 n2; do start "$name"; done
  scan 0
  spoor_of n0 changes --consumer copy --commit > /dev/null 2>&1 || [[ $? == 4 ]] # it begins with everything
  change n0 dir bucket/a/x
  change n1 file bucket/b/y
  scan 0
  change n2 tree bucket/c
  scan 0
  # n2 departs with a mark that no scan has read, and the scans count its silence.
  change n2 dir bucket/e/x
  spoor_of n2 status --json > "$disk/reported/status-n2.json"
  stop n2 "$1"
  publish n0 n1
  change n0 dir bucket/d/x
  scan 3
  sleep 2
  scan 3

  report usage usage --depth 9 --sort name --json
  report scans scans --json
  report changes changes --consumer copy --json
  report files changes --consumer copy --files --json
  report drives drives --json
  change n0 dir bucket/f/x
  change n1 file bucket/c/y
  for name in n0 n1; do spoor_of "$name" status --json > "$disk/reported/status-$name.json"; done
  # Only the journal holds the last marks.
  spoor_of n0 inspect --contains bucket/f/x "$disk/n0-drive/.spoor/.tracker.bin" | grep -q 'f/x: in no cycle' ||
    die "the last marks are in the snapshot already"
  cp /proc/sys/kernel/random/boot_id "$disk/boot_id"
  for name in n0 n1 e0; do stop "$name" "$1"; done
  stop etcd KILL
  stop dns TERM
}

make_disk() { # make_disk NAME SIGNAL
  truncate --size 4M "$scratch/image"
  mkfs.ext4 -q -F -m 0 -b 1024 -N 192 -O ^has_journal,^resize_inode "$scratch/image"
  mount -o loop,discard "$scratch/image" "$disk"
  write_history "$2"
  umount "$disk"
  gzip -9 --no-name < "$scratch/image" > "$directory/$1.img.gz"
  rm -r "$scratch/image" "$scratch/etcd"
  pids=()
}

if [[ ${IN_NAMESPACES:-} != yes ]]; then
  [[ $# == 3 ]] || die "usage: make.sh DIRECTORY SPOORD SPOOR"
  IN_NAMESPACES=yes exec unshare --mount --net "$0" "$(realpath "$1")" "$(realpath "$2")" "$(realpath "$3")"
fi
directory=$1
spoord=$2
spoor=$3
ip link set lo up
scratch=$(mktemp -d)
declare -A pids=()
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$scratch"' EXIT
make_disk clean TERM
make_disk crash KILL
