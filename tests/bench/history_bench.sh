#!/bin/bash
# What the history of totals and the totals by owner cost: scans of a tree of which 1 % of the directories have changed,
# without a history and with one; scans of everything into a new database, without owners and with them; and queries of
# the growth. In the deep tree, most directories lie below history.depth, as those of an object store do; in the flat one,
# each has a history and sums of its own. A daemon and a tree for each variant; rounds alternate between them. Figures are
# medians, and the fastest and the slowest.
#   history_bench.sh SPOORD SPOOR [ROUNDS], or SPOORD SPOOR --short: small trees, few rounds: these figures do not measure
#   speed
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C  # a decimal point in what is printed and what awk reads

readonly spoord=$1 spoor=$2
if [[ ${3:-} == --short ]]; then
  buckets=10 objects=100 rounds=2
else
  buckets=200 objects=1000 rounds=${3:-7}
fi
readonly buckets objects rounds
work=$(mktemp -d "${TMPDIR:-/tmp}/spoor-bench-XXXXXX")
readonly work
pids=()

clean_up() {
  # In braces: bash reports what it kills.
  { ((${#pids[@]} == 0)) || kill -KILL "${pids[@]}"; wait; } 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

fail() {  # message [log]
  echo "history_bench: $1" >&2
  [[ -z ${2:-} ]] || tail -n 20 "$2" >&2
  exit 1
}

# start NAME HISTORY OWNERS: a tree, and its daemon at the socket $work/NAME/sock
start() {
  local at=$work/$shape-$1
  mkdir -p "$at/drive" "$at/data"
  (
    cd "$at/drive"
    for ((bucket = 1; bucket <= buckets; ++bucket)); do seq -f "$(path_of "$bucket")/object-%g" "$objects"; done | xargs mkdir -p
    for ((bucket = 1; bucket <= buckets; ++bucket)); do
      seq -f "$(path_of "$bucket")/object-%g/part" "$objects" | xargs touch
    done
  )
  cat >"$at/spoor.json" <<JSON
{"node": {"name": "node", "data_dir": "$at/data"}, "drives": ["$at/drive"], "listen": [{"unix": "$at/sock"}],
 "scan": {"min_cycle_age": "0s", "audit_period": "0s"}, "history": {"keep": $2}, "usage": {"owners": $3}}
JSON
  "$spoord" --config "$at/spoor.json" >"$at/log" 2>&1 &
  pids+=($!)
  until [[ -S $at/sock ]]; do
    kill -0 "${pids[-1]}" 2>/dev/null || fail "$1 does not start" "$at/log"
    sleep 0.05
  done
}

# Of the directory with the objects, 10 to a bucket in the deep tree.
path_of() {  # number
  if [[ $shape == flat ]]; then echo "bucket-$1"; else echo "bucket-$(($1 % 10))/prefix-$1"; fi
}

# scan NAME FIGURE [ARGUMENTS]: adds the time of a scan in ms to the figure
scan() {
  local at=$work/$shape-$1 figure=$shape-$2
  shift 2
  "$spoor" --config "$at/spoor.json" scan --json "$@" >"$at/scan" 2>"$at/scan-errors" || fail "a scan fails" "$at/scan-errors"
  sed -nE 's/^ *"duration_s": ([0-9.e-]+),?$/\1/p' "$at/scan" | awk '{print $1 * 1000}' >>"$work/$figure"
}

# change NAME ROUND: writes a new file to one in 100 of the directories, and marks them
change() {
  local at=$work/$shape-$1 bucket object
  for ((bucket = 1; bucket <= buckets; ++bucket)); do
    for ((object = $2 % 100 + 1; object <= objects; object += 100)); do echo "$(path_of "$bucket")/object-$object/round-$2"; done
  done >"$at/changed"
  (cd "$at/drive" && while read -r path; do echo "$path" >"$path"; done <"$at/changed")
  "$spoor" --config "$at/spoor.json" mark --kind file - <"$at/changed" >/dev/null 2>"$at/mark-errors" ||
    fail "a mark fails" "$at/mark-errors"
}

# query FIGURE COMMAND...: adds its time in ms to the figure
query() {
  local figure=$1 began
  shift
  began=${EPOCHREALTIME/./}
  "$@" >"$work/answer" 2>"$work/query-errors" || fail "a query fails" "$work/query-errors"
  echo $((${EPOCHREALTIME/./} - began)) | awk '{print $1 / 1000}' >>"$work/$figure"
}

line() {  # figure label [figure that it is a ratio of]
  sort -g "$work/$1" | awk -v label="$2" -v base="${3:+$(median "$3")}" '
    {value[NR] = $1}
    END {
      median = value[int((NR + 1) / 2)]
      printf "%-52s %9.1f  %9.1f  %9.1f", label, median, value[1], value[NR]
      if (base > 0) printf "  %5.2f", median / base
      print ""
    }'
}
median() { sort -g "$work/$1" | awk '{value[NR] = $1} END {print value[int((NR + 1) / 2)]}'; }

# measure SHAPE
measure() {
  shape=$1
  start off false false
  start history true false
  start owners false true
  for ((round = 1; round <= rounds; ++round)); do
    for name in off owners; do scan "$name" "full-$name" --rebuild; done
  done
  scan history full-history
  for ((round = 1; round <= rounds; ++round)); do
    for name in off history owners; do
      change "$name" "$round"
      scan "$name" "dirty-$name"
    done
    for depth in 1 2; do
      query "$shape-growth-$depth" "$spoor" --config "$work/$shape-history/spoor.json" usage --since 1h --sort growth \
        --depth "$depth" --limit 100
      query "$shape-api-$depth" curl -sSf --unix-socket "$work/$shape-history/sock" \
        "http://localhost/v1/usage?since=1h&sort=growth&limit=100&depth=$depth"
    done
    query "$shape-owner" "$spoor" --config "$work/$shape-owners/spoor.json" usage --owner
  done
  printf '%s tree of %s directories; ms%*s %9s  %9s  %9s  %5s\n' "$shape" $((buckets * objects)) 20 '' median fastest slowest ratio
  line "$shape-dirty-off" 'scan, 1 % changed'
  line "$shape-dirty-history" 'the same with history.keep, wanted 1.05' "$shape-dirty-off"
  line "$shape-dirty-owners" 'the same with usage.owners' "$shape-dirty-off"
  line "$shape-full-off" 'scan --rebuild'
  line "$shape-full-owners" 'the same with usage.owners, wanted 1.10' "$shape-full-off"
  line "$shape-growth-1" 'spoor usage --since 1h --sort growth, wanted 100'
  line "$shape-api-1" 'GET /v1/usage?since=1h&sort=growth, wanted 100'
  line "$shape-growth-2" 'the same command with --depth 2'
  line "$shape-api-2" 'the same request with depth=2'
  line "$shape-owner" 'spoor usage --owner'
}

measure deep
measure flat
