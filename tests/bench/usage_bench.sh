#!/bin/bash
# GET /v1/usage?scope=cluster of 10 and of 100 nodes, beside GET /v1/usage of one node: all daemons on this machine, each
# with a small tree of its own that it has scanned. Rounds alternate between the three; figures are medians, and the
# fastest and the slowest request. The nodes share the processors here: in a cluster, each has its own.
#   usage_bench.sh SPOORD SPOOR [ROUNDS], or SPOORD SPOOR --short: few nodes, few rounds: these figures do not measure
#   speed
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C  # a decimal point in what curl prints and awk reads

readonly spoord=$1 spoor=$2
if [[ ${3:-} == --short ]]; then
  small=3 large=10 warm_up=1 rounds=3
else
  small=10 large=100 warm_up=5 rounds=${3:-30}
fi
readonly small large warm_up rounds
readonly directories=50 wanted_ms=200
work=$(mktemp -d "${TMPDIR:-/tmp}/spoor-bench-XXXXXX")
readonly work
declare -A pid=()  # by the name of the node

clean_up() {
  # In braces: bash reports what it kills.
  { ((${#pid[@]} == 0)) || kill -KILL "${pid[@]}"; wait; } 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

fail() {  # message [log]
  echo "usage_bench: $1" >&2
  [[ -z ${2:-} ]] || tail -n 20 "$2" >&2
  exit 1
}

# start NAME PEERS: a daemon at the socket $work/NAME/sock and at a port, with these URLs as its peers, in JSON
start() {
  local at=$work/$1
  mkdir -p "$at/drive" "$at/data"
  (cd "$at/drive" && seq -f 'bucket-%g' "$directories" | xargs mkdir)
  for ((i = 1; i <= directories; ++i)); do echo "$1" >"$at/drive/bucket-$i/$1"; done
  cat >"$at/spoor.json" <<JSON
{"node": {"name": "$1", "data_dir": "$at/data"}, "drives": ["$at/drive"], "peers": {"static": [$2]},
 "listen": [{"address": "127.0.0.1", "port": 0, "insecure": true}, {"unix": "$at/sock"}]}
JSON
  : >"$at/log"
  "$spoord" --config "$at/spoor.json" 2>>"$at/log" &
  pid[$1]=$!
}

# Waits until the daemon listens; sets $url to its address.
wait_for() {  # name
  until url=$(sed -nE 's/.*listening on (http:.*)$/\1/p' "$work/$1/log") && [[ -n $url ]]; do
    kill -0 "${pid[$1]}" 2>/dev/null || fail "$1 does not start" "$work/$1/log"
    sleep 0.05
  done
}

scan() {  # name
  until [[ -S $work/$1/sock ]]; do sleep 0.05; done
  "$spoor" --config "$work/$1/spoor.json" scan >"$work/$1/scan" 2>&1 || fail "the scan of $1 fails" "$work/$1/scan"
}

# The nodes that are asked have the first of the others as their peers, which know no peers: their polls of each other
# would take the processors that a cluster has more of.
start_all() {
  local urls=() url name
  for ((node = 2; node <= large; ++node)); do start "node-$node" ''; done
  for ((node = 2; node <= large; ++node)); do
    wait_for "node-$node"
    urls+=("\"$url\"")
    scan "node-$node"
  done
  for name in "$small" "$large"; do
    start "of-$name" "$(IFS=,; echo "${urls[*]:0:$((name - 1))}")"
    wait_for "of-$name"
    scan "of-$name"
  done
}

# ask NAME QUERY: one request; sets $ms to its time and leaves the response in $work/response
ask() {
  ms=$(curl -sf -o "$work/response" -w '%{time_total}' --unix-socket "$work/$1/sock" "http://localhost/v1/usage?$2") ||
    fail "$1 does not respond" "$work/$1/log"
  ms=$(awk -v s="$ms" 'BEGIN { printf "%.3f", s * 1000 }')
}

# check NODES: the response has the totals of so many nodes
check() {
  jq -e --argjson nodes "$1" --argjson directories "$directories" \
    '.complete and .files == $nodes * $directories and (.children | length) == $directories' \
    "$work/response" >/dev/null || fail "the totals are not those of $1 nodes" "$work/response"
}

measure() {
  local round
  for ((round = 1 - warm_up; round <= rounds; ++round)); do
    ask "of-$large" depth=1
    check 1
    if ((round > 0)); then echo "1 $ms" >>"$work/figures"; fi
    for nodes in "$small" "$large"; do
      ask "of-$nodes" 'scope=cluster&depth=1'
      check "$nodes"
      if ((round > 0)); then echo "$nodes $ms" >>"$work/figures"; fi
    done
  done
}

start_all
measure
echo "Requests: $rounds each. $directories directories on each node, $(nproc) processors."
sort -n -k1,1 -k2,2 "$work/figures" | awk -v small="$small" -v large="$large" -v wanted_ms="$wanted_ms" '
  { times[$1, ++count[$1]] = $2 }
  function median(nodes,    n) {
    n = count[nodes]
    return (times[nodes, int((n + 1) / 2)] + times[nodes, int(n / 2) + 1]) / 2
  }
  function line(nodes) {
    return sprintf("%.1f (%.1f..%.1f) ms", median(nodes), times[nodes, 1], times[nodes, count[nodes]])
  }
  END {
    printf "%-28s %28s %s\n", "", "median (fastest..slowest)", "ratio"
    printf "%-28s %28s\n", "/v1/usage of one node", line(1)
    printf "%-28s %28s %.0f\n", "of the cluster, " small " nodes", line(small), median(small) / median(1)
    printf "%-28s %28s %.0f, wanted: under %d ms\n", "of the cluster, " large " nodes", line(large),
           median(large) / median(1), wanted_ms
  }'
