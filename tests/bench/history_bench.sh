#!/bin/bash
# What the history of totals and the totals by owner cost: scans of a tree of which 1 % of the directories have changed,
# without a history and with one; scans of everything into a new database, without owners and with them; and queries of
# the growth. In the deep tree, most directories lie below history.depth, as those of an object store do; in the flat one,
# each has a history and sums of its own. A daemon and a tree for each variant; rounds alternate between them. Figures are
# medians, and the fastest and the slowest.
#   history_bench.sh SPOORD SPOOR [ROUNDS], or SPOORD SPOOR --short: small trees, few rounds: these figures do not measure
#   speed
# shellcheck source=tests/bench/bench.sh
source "$(dirname "$0")/bench.sh"

readonly spoor=$2
if [[ ${3:-} == --short ]]; then
  buckets=10 objects=100 rounds=2
else
  buckets=200 objects=1000 rounds=${3:-7}
fi
readonly buckets objects rounds

# start NODE HISTORY OWNERS: a tree, and its daemon
start() {
  local at=$work/$1
  mkdir -p "$at/drive"
  (
    cd "$at/drive"
    for ((bucket = 1; bucket <= buckets; ++bucket)); do seq -f "$(path_of "$bucket")/object-%g" "$objects"; done | xargs mkdir -p
    for ((bucket = 1; bucket <= buckets; ++bucket)); do
      seq -f "$(path_of "$bucket")/object-%g/part" "$objects" | xargs touch
    done
  )
  start_spoord "$1" '"scan": {"min_cycle_age": "0s", "audit_period": "0s"}, "history": {"keep": '"$2"'}, "usage": {"owners": '"$3"'}'
  await "$at/log" test -S "$at/sock"
}

# Of the directory with the objects, 10 to a bucket in the deep tree.
path_of() {  # number
  if [[ $shape == flat ]]; then echo "bucket-$1"; else echo "bucket-$(($1 % 10))/prefix-$1"; fi
}

spoor() { "$spoor" --config "$work/$shape-$1/spoor.json" "${@:2}"; }  # variant command...

# scan VARIANT FIGURE [ARGUMENTS]: adds the time of a scan in ms to the figure
scan() {
  spoor "$1" scan --json "${@:3}" >"$work/scan" 2>"$work/output" || fail 'a scan fails' "$work/output"
  sed -nE 's/^ *"duration_s": ([0-9.e-]+),?$/\1/p' "$work/scan" | awk '{ print $1 * 1000 }' >>"$work/figures/$shape-$2"
}

# change VARIANT ROUND: writes a new file to one in 100 of the directories, and marks them
change() {
  local bucket object
  for ((bucket = 1; bucket <= buckets; ++bucket)); do
    for ((object = $2 % 100 + 1; object <= objects; object += 100)); do echo "$(path_of "$bucket")/object-$object/round-$2"; done
  done >"$work/changed"
  (cd "$work/$shape-$1/drive" && while read -r path; do echo "$path" >"$path"; done <"$work/changed")
  spoor "$1" mark --kind file - <"$work/changed" >"$work/output" 2>&1 || fail 'a mark fails' "$work/output"
}

line() {  # label figure [figure that it is a ratio of]
  # shellcheck disable=SC2046,SC2183  # words
  printf '%-52s %9.1f  %9.1f  %9.1f' "$1" $(stats "$shape-$2")
  echo "${3:+  $(printf '%5s' "$(ratio "$shape-$2" "$shape-$3")")}"
}

measure() {  # shape
  shape=$1
  start "$shape-off" false false
  start "$shape-history" true false
  start "$shape-owners" false true
  for ((round = 1; round <= rounds; ++round)); do
    for variant in off owners; do scan "$variant" "full-$variant" --rebuild; done
  done
  scan history full-history
  for ((round = 1; round <= rounds; ++round)); do
    for variant in off history owners; do
      change "$variant" "$round"
      scan "$variant" "dirty-$variant"
    done
    for depth in 1 2; do
      timed "$shape-growth-$depth" spoor history usage --since 1h --sort growth --depth "$depth" --limit 100
      timed "$shape-api-$depth" curl -sSf --unix-socket "$work/$shape-history/sock" \
        "http://localhost/v1/usage?since=1h&sort=growth&limit=100&depth=$depth"
    done
    timed "$shape-owner" spoor owners usage --owner
  done
  printf '%s tree of %s directories; ms%*s %9s  %9s  %9s  %5s\n' "$shape" $((buckets * objects)) 20 '' median fastest slowest ratio
  line 'scan, 1 % changed' dirty-off
  line 'the same with history.keep, wanted 1.05' dirty-history dirty-off
  line 'the same with usage.owners' dirty-owners dirty-off
  line 'scan --rebuild' full-off
  line 'the same with usage.owners, wanted 1.10' full-owners full-off
  line 'spoor usage --since 1h --sort growth, wanted 100' growth-1
  line 'GET /v1/usage?since=1h&sort=growth, wanted 100' api-1
  line 'the same command with --depth 2' growth-2
  line 'the same request with depth=2' api-2
  line 'spoor usage --owner' owner
}

measure deep
measure flat
