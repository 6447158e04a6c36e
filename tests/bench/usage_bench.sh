#!/bin/bash
# GET /v1/usage?scope=cluster of 10 and of 100 nodes, beside GET /v1/usage of one node: all daemons on this machine, each
# with a small tree of its own that it has scanned. Rounds alternate between the three; figures are medians, and the
# fastest and the slowest request. The nodes share the processors here: in a cluster, each has its own.
#   usage_bench.sh SPOORD SPOOR [ROUNDS], or SPOORD SPOOR --short: few nodes, few rounds: these figures do not measure
#   speed
# shellcheck source=tests/bench/bench.sh
source "$(dirname "$0")/bench.sh"

readonly spoor=$2
if [[ ${3:-} == --short ]]; then
  small=3 large=10 warm_up=1 rounds=3
else
  small=10 large=100 warm_up=5 rounds=${3:-30}
fi
readonly small large warm_up rounds
readonly directories=50 wanted_ms=200

# start NODE PEERS: a daemon with a tree, with these URLs as its peers, in JSON
start() {
  start_spoord "$1" "\"peers\": {\"static\": [$2]}" "$tcp_listener"
  (cd "$work/$1/drive" && seq -f 'bucket-%g' "$directories" | xargs mkdir)
  for ((i = 1; i <= directories; ++i)); do echo "$1" >"$work/$1/drive/bucket-$i/$1"; done
}

scan() {  # name
  await "$work/$1/log" test -S "$work/$1/sock"
  "$spoor" --config "$work/$1/spoor.json" scan >"$work/$1/scan" 2>&1 || fail "the scan of $1 fails" "$work/$1/scan"
}

# Each of the two nodes that are asked has some of the others as its peers, which know no peers: their polls of each
# other would take the processors that a cluster has more of. No other node has both as a member: the one would expect the
# other.
start_all() {
  local urls=() node nodes=$((small + large - 2))
  for ((node = 1; node <= nodes; ++node)); do start "node-$node" ''; done
  for ((node = 1; node <= nodes; ++node)); do
    wait_for_url "node-$node"
    urls+=("\"$url\"")
    scan "node-$node"
  done
  start "of-$small" "$(IFS=,; echo "${urls[*]:0:$((small - 1))}")"
  start "of-$large" "$(IFS=,; echo "${urls[*]:$((small - 1))}")"
  for node in "of-$small" "of-$large"; do
    wait_for_url "$node"
    scan "$node"
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
    if ((round > 0)); then echo "$ms" >>"$work/figures/1"; fi
    for nodes in "$small" "$large"; do
      ask "of-$nodes" 'scope=cluster&depth=1'
      check "$nodes"
      if ((round > 0)); then echo "$ms" >>"$work/figures/$nodes"; fi
    done
  done
}

start_all
measure
echo "Requests: $rounds each. $directories directories on each node, $(nproc) processors."
# shellcheck disable=SC2046,SC2183  # words
line() { printf '%-28s %28s %s\n' "$1" "$(printf '%.1f (%.1f..%.1f) ms' $(stats "$2"))" "${3:-}"; }  # label nodes [ratio]
printf '%-28s %28s %s\n' '' 'median (fastest..slowest)' ratio
line '/v1/usage of one node' 1
line "of the cluster, $small nodes" "$small" "$(ratio "$small" 1)"
line "of the cluster, $large nodes" "$large" "$(ratio "$large" 1), wanted: under $wanted_ms ms"
