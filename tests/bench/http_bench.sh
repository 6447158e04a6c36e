#!/bin/bash
# POST /v1/marks, loaded by wrk (over a Unix socket by h2load, as HTTP/1.1), beside nginx that answers the same bodies
# with 204: by turns in one run, medians of the rounds. Durability is `memory`, but for the case that compares it with
# `disk`. At the end what a slowloris does to others.
#   http_bench.sh SPOORD [ROUNDS [SECONDS]], or SPOORD --short: each case once, for a second: figures that say nothing
set -euo pipefail

readonly spoord=$1
first_round=0  # it warms up, and does not count
if [[ ${2:-} == --short ]]; then
  first_round=1 rounds=1 seconds=1
else
  rounds=${2:-5} seconds=${3:-3}
fi
readonly first_round rounds seconds
nginx=$(PATH=$PATH:/usr/sbin command -v nginx) || { echo "nginx is missing" >&2; exit 1; }
readonly nginx
work=$(mktemp -d)
readonly work
pids=()
clean_up() {
  ((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

# The port that a line of a log names, once it is there.
port_in() {
  local port
  until port=$(sed -nE 's/.*listening on http:\/\/127.0.0.1:([0-9]+)$/\1/p' "$1") && [[ -n $port ]]; do
    kill -0 "$2" || { cat "$1" >&2; exit 1; }
    read -rt 0.05 <> <(:) || true
  done
  echo "$port"
}

# start NAME DURABILITY: a daemon of its own, at the port that it leaves in $port, and at the socket $work/NAME.sock
start() {
  mkdir -p "$work/$1/drive" "$work/$1/data"
  cat >"$work/$1.json" <<JSON
{"node": {"name": "$1", "data_dir": "$work/$1/data"}, "drives": ["$work/$1/drive"],
 "tracker": {"durability": "$2"}, "listen": [{"address": "127.0.0.1", "port": 0, "insecure": true}, {"unix": "$work/$1.sock"}]}
JSON
  "$spoord" --config "$work/$1.json" 2>"$work/$1.log" &
  pids+=($!)
  port=$(port_in "$work/$1.log" "$!")
}
start memory memory
readonly spoor_port=$port
start disk disk
readonly disk_port=$port

nginx_port=7441
while (exec 3<>"/dev/tcp/127.0.0.1/$nginx_port") 2>/dev/null; do ((++nginx_port)); done  # taken
readonly nginx_port
cat >"$work/nginx.conf" <<CONF
worker_processes 1;
daemon off;
pid $work/nginx.pid;
error_log $work/nginx.log;
events { worker_connections 4096; }
http {
  access_log off;
  client_max_body_size 16m;
  client_body_buffer_size 1m;
  client_body_temp_path $work/body;
  keepalive_requests 1000000000;
  server { listen 127.0.0.1:$nginx_port; listen unix:$work/nginx.sock; location / { return 204; } }
}
CONF
"$nginx" -c "$work/nginx.conf" -p "$work" 2>>"$work/nginx.log" &
pids+=($!)
until (exec 3<>"/dev/tcp/127.0.0.1/$nginx_port") 2>/dev/null; do
  kill -0 "$!" || { cat "$work/nginx.log" >&2; exit 1; }
done
kill -0 "$!" || { cat "$work/nginx.log" >&2; exit 1; }  # it may have been another's

# Bodies: one path; a thousand known ones; a thousand that nobody has marked yet.
readonly one_path='{"paths":["bucket-17/photos/2026/november/holiday/img-000123.jpg"]}'
printf %s "$one_path" >"$work/one_path"
cat >"$work/json1.lua" <<LUA
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '$one_path'
LUA
cat >"$work/new1.lua" <<'LUA'
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local count = 0
local start = os.time() .. tostring({}):sub(-6)
function request()
  count = count + 1
  return wrk.format(nil, nil, nil, '{"paths":["bucket-17/photos/2026/' .. start .. '/img-' .. count .. '"]}')
end
LUA
for kind in json text; do
  cat >"$work/${kind}1000.lua" <<LUA
local paths = {}
for i = 1, 1000 do paths[i] = "bucket-17/photos/2026/nov/holiday/img-" .. string.format("%06d", i) end
wrk.method = "POST"
if "$kind" == "json" then
  wrk.headers["Content-Type"] = "application/json"
  wrk.body = '{"paths":["' .. table.concat(paths, '","') .. '"]}'
else
  wrk.headers["Content-Type"] = "text/plain"
  wrk.body = table.concat(paths, "\n")
end
LUA
done
cat >"$work/new1000.lua" <<'LUA'
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local paths = {}
for i = 1, 1000 do paths[i] = "bucket-17/photos/2026/nov/holiday/@-" .. string.format("%06d", i) end
local body = '{"paths":["' .. table.concat(paths, '","') .. '"]}'
local count = 0
local start = os.time() .. tostring({}):sub(-6)
function request()
  count = count + 1
  return wrk.format(nil, nil, nil, (body:gsub("@", start .. count)))
end
LUA

# requests/s, p50 and p99 in us of one run
load() {  # port script threads connections [seconds]
  wrk -t"$3" -c"$4" -d"${5:-$seconds}" --timeout 30s --latency -s "$work/$2.lua" "http://127.0.0.1:$1/v1/marks" >"$work/wrk.log"
  if grep -q 'Non-2xx\|Socket errors' "$work/wrk.log"; then cat "$work/wrk.log" >&2; exit 1; fi
  awk '
    function us(text) { return text ~ /us$/ ? text + 0 : text ~ /ms$/ ? text * 1000 : text * 1000000 }
    $1 == "50%" { p50 = us($2) }
    $1 == "99%" { p99 = us($2) }
    $1 == "Requests/sec:" { rate = $2 }
    END { print rate, p50, p99 }' "$work/wrk.log"
}

# The same of one path over a Unix socket; h2load tells the mean instead of quantiles.
load_unix() {  # socket
  h2load --h1 -t1 -c64 -D "$seconds" -d "$work/one_path" -H 'content-type: application/json' -B "unix:$1" \
    http://localhost/v1/marks >"$work/h2load.log"
  awk '
    /^finished/ { rate = $4 }
    /^requests:/ { bad = $10 + $12 + $14 }
    END { if (bad || !rate) exit 1; print rate, 0, 0 }' "$work/h2load.log" || { cat "$work/h2load.log" >&2; exit 1; }
}

# A cycle of its own, so that the filters are not those of all rounds: a real one seldom gets two million paths.
cycle=1
open_cycle() {
  cycle=$((cycle + 1))
  curl -sf "http://127.0.0.1:$spoor_port/v1/peer/cycle" -d '{"cluster":"default","current":'$cycle'}' -o "$work/frame"
}

# slowloris PORT: 500 connections that send a header a byte at a time, until it is ended.
slowloris() {
  local fd fds=()
  trap 'exit 0' TERM
  chrt --idle --pid 0 "$BASHPID"  # the daemon is to be measured, not who gets the processors
  for ((i = 0; i < 500; ++i)); do
    exec {fd}<>"/dev/tcp/127.0.0.1/$1"
    printf 'POST /v1/marks HTTP/1.1\r\nHost: a\r\nX-Slow: ' >&"$fd"
    fds+=("$fd")
  done
  : >"$work/slow"
  while true; do
    for fd in "${fds[@]}"; do printf a >&"$fd" || true; done 2>/dev/null
    read -rt 0.2 <> <(:) || true
  done
}

# name, and how it is loaded
readonly cases=(
  "nginx-1-path load $nginx_port json1 1 64" "spoor-1-path load $spoor_port json1 1 64"
  "nginx-1-path-2-threads load $nginx_port json1 2 64" "spoor-1-path-2-threads load $spoor_port json1 2 64"
  "nginx-1-path-unix load_unix $work/nginx.sock" "spoor-1-path-unix load_unix $work/memory.sock"
  "spoor-1-new-memory load $spoor_port new1 1 64 1" "spoor-1-new-disk load $disk_port new1 1 64 1"
  "nginx-1000-paths load $nginx_port json1000 1 8" "spoor-1000-known load $spoor_port json1000 1 8"
  "spoor-1000-known-text load $spoor_port text1000 1 8" "spoor-1000-new load $spoor_port new1000 1 8 1"
)
for ((round = first_round; round <= rounds; ++round)); do
  for each in "${cases[@]}"; do
    read -r name how <<<"$each"
    [[ $name != *-new* ]] || open_cycle
    # shellcheck disable=SC2086  # words
    figures=$($how)
    if ((round > 0)); then echo "$name $figures" >>"$work/figures"; fi
  done
  figures=$(load "$spoor_port" json1 1 8)
  if ((round > 0)); then echo "quiet $figures" >>"$work/figures"; fi
  # Also where it attacks somebody else: what it takes of the processors alone is no doing of the daemon's.
  for victim in "slowloris-elsewhere $nginx_port" "slowloris $spoor_port"; do
    read -r name port <<<"$victim"
    rm -f "$work/slow"
    slowloris "$port" &
    loris=$!
    pids+=("$loris")
    until [[ -e $work/slow ]]; do kill -0 "$loris"; done
    figures=$(load "$spoor_port" json1 1 8)
    if ((round > 0)); then echo "$name $figures" >>"$work/figures"; fi
    kill "$loris"
    wait "$loris" || true
    unset 'pids[-1]'
  done
done

awk '
  function median(name, column,    n, i, j, values, swap) {
    n = count[name]
    for (i = 1; i <= n; ++i) values[i] = at[name, i, column]
    for (i = 1; i <= n; ++i) for (j = i + 1; j <= n; ++j)
      if (values[j] < values[i]) { swap = values[i]; values[i] = values[j]; values[j] = swap }
    low = values[1]; high = values[n]
    return values[int((n + 1) / 2)]
  }
  { ++count[$1]; for (c = 2; c <= 4; ++c) at[$1, count[$1], c] = $c; if (count[$1] == 1) names[++known] = $1 }
  END {
    printf "8 connections: quiet, slowloris; else 64 for one path, 8 for 1000\n%-24s %28s %9s %9s\n", "", "requests/s (least..most)", "p50 us", "p99 us"
    for (k = 1; k <= known; ++k) {
      rate = median(names[k], 2)
      rates[names[k]] = rate
      printf "%-24s %10.0f (%.0f..%.0f) %9.0f %9.0f\n", names[k], rate, low, high, median(names[k], 3),
             median(names[k], 4)
    }
    printf "one path: %.2f x nginx (wanted: 0.75); with two threads of load %.2f\n",
           rates["spoor-1-path"] / rates["nginx-1-path"],
           rates["spoor-1-path-2-threads"] / rates["nginx-1-path-2-threads"]
    printf "over a Unix socket: %.2f x nginx; durability disk: %.2f x memory (wanted: 0.6)\n",
           rates["spoor-1-path-unix"] / rates["nginx-1-path-unix"], rates["spoor-1-new-disk"] / rates["spoor-1-new-memory"]
    nginx = rates["nginx-1000-paths"]
    printf "1000 paths, of nginx, which parses none: known %.2f (wanted: 0.3), new %.2f (wanted: 0.12)\n",
           rates["spoor-1000-known"] / nginx, rates["spoor-1000-new"] / nginx
    printf "1000 paths: %.2f M known/s, as text %.2f, %.2f M new/s\n",
           rates["spoor-1000-known"] / 1000, rates["spoor-1000-known-text"] / 1000, rates["spoor-1000-new"] / 1000
    printf "p99 during a slowloris of 500: %.1f x the quiet one (wanted: below 10); at another server: %.1f x\n",
           median("slowloris", 4) / median("quiet", 4), median("slowloris-elsewhere", 4) / median("quiet", 4)
  }' "$work/figures"
