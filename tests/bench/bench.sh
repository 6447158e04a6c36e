# shellcheck shell=bash
# What the benchmarks in shell share: they source it first.
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C  # a decimal point in $EPOCHREALTIME and in what awk reads

bench=$(basename "$0" .sh)
work=$(mktemp -d "${TMPDIR:-/tmp}/spoor-bench-XXXXXX")
readonly spoord=$1 bench work
pids=()  # ended by clean_up
mkdir "$work/figures"

clean_up() {
  # In braces: bash reports what it kills.
  { ((${#pids[@]} == 0)) || kill -KILL "${pids[@]}"; wait; } 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

fail() {  # message [log]
  echo "$bench: $1" >&2
  [[ -z ${2:-} ]] || tail -n 20 "$2" >&2
  exit 1
}

# await LOG COMMAND...: until the command succeeds, while the process started last runs
await() {
  until "${@:2}" 2>/dev/null; do
    kill -0 "${pids[-1]}" 2>/dev/null || fail 'a server does not start' "$1"
    sleep 0.05
  done
}

# start_spoord NODE [MEMBERS [LISTENER]]: a daemon, with further members of the configuration and a further listener, and
# with the drive, the socket and the log in $work/NODE. It may not listen yet.
start_spoord() {
  local at=$work/$1
  mkdir -p "$at/drive" "$at/data"
  cat >"$at/spoor.json" <<JSON
{"node": {"name": "$1", "data_dir": "$at/data"}, "drives": ["$at/drive"], ${2:+$2,}
 "listen": [{"unix": "$at/sock"}${3:+, $3}]}
JSON
  "$spoord" --config "$at/spoor.json" >"$at/log" 2>&1 &
  pids+=($!)
}

# By http://127.0.0.1, at a free port; wait_for_url NODE sets $url.
# shellcheck disable=SC2034  # for those that source this
readonly tcp_listener='{"address": "127.0.0.1", "port": 0, "insecure": true}'
wait_for_url() {
  await "$work/$1/log" grep -q 'listening on http:' "$work/$1/log"
  # shellcheck disable=SC2034
  url=$(sed -nE 's/.*listening on (http:.*)$/\1/p' "$work/$1/log")
}

# timed FIGURE COMMAND...: adds the milliseconds that the command takes to the figure; its output is in $work/output
timed() {
  local began=${EPOCHREALTIME/./}
  "${@:2}" >"$work/output" 2>&1 || fail "$1 fails" "$work/output"
  awk -v us="$((${EPOCHREALTIME/./} - began))" 'BEGIN { print us / 1000 }' >>"$work/figures/$1"
}

# The median of the figure, the least and the largest value.
stats() { sort -g "$work/figures/$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)], v[1], v[NR] }'; }
median() { stats "$1" | cut -d ' ' -f 1; }
# ratio FIGURE FIGURE: of their medians
ratio() { awk -v a="$(median "$1")" -v b="$(median "$2")" 'BEGIN { printf "%.2f", a / b }'; }
