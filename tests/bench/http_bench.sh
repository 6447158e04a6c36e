#!/bin/bash
# POST /v1/marks, loaded by wrk (over a Unix socket by h2load, as HTTP/1.1), beside nginx that answers the same bodies
# with 204: by turns in one run, medians of the rounds. Durability is `memory`, but for the cases that compare it with
# `disk`, and that with what the disk of $TMPDIR can do. At the end what a slowloris does to others.
#   http_bench.sh SPOORD [ROUNDS [SECONDS]], or SPOORD --short: each case once, for a second: figures that say nothing
# shellcheck source=tests/bench/bench.sh
source "$(dirname "$0")/bench.sh"

first_round=0  # it warms up, and does not count
if [[ ${2:-} == --short ]]; then
  first_round=1 rounds=1 seconds=1
else
  rounds=${2:-5} seconds=${3:-3}
fi
readonly first_round rounds seconds
nginx=$(PATH=$PATH:/usr/sbin command -v nginx) || { echo "nginx is missing" >&2; exit 1; }
readonly nginx

start_spoord memory '"tracker": {"durability": "memory"}' "$tcp_listener"
wait_for_url memory
readonly memory_port=${url##*:}
start_spoord disk '"tracker": {"durability": "disk"}' "$tcp_listener"
wait_for_url disk
readonly disk_port=${url##*:}

end() {  # nginx ends its worker itself
  local master
  if [[ -s $work/nginx.pid ]]; then
    master=$(<"$work/nginx.pid")
    if kill "$master"; then wait "$master" || true; fi
  fi
  clean_up
}
trap end EXIT

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
await "$work/nginx.log" test -s "$work/nginx.pid"

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

# Small records appended to one file, each synced: what one client at a time can get of the disk at most.
syncs() {
  local count=500 began=${EPOCHREALTIME/./}
  dd if=/dev/zero of="$work/synced" bs=100 count="$count" oflag=append,dsync conv=notrunc status=none
  awk -v count="$count" -v us="$((${EPOCHREALTIME/./} - began))" 'BEGIN { print count * 1000000 / us, us / count, 0 }'
}

# A cycle of its own, so that the filters are not those of all rounds: a real one seldom gets two million paths.
cycle=1
open_cycle() {
  cycle=$((cycle + 1))
  curl -sf "http://127.0.0.1:$memory_port/v1/peer/cycle" -d '{"cluster":"default","current":'$cycle'}' -o "$work/frame"
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

# measure NAME HOW...: adds its figures, unless the round warms up
measure() {
  local figures
  read -ra figures <<<"$("${@:2}")"
  ((round > 0)) || return 0
  echo "${figures[0]}" >>"$work/figures/$1"
  echo "${figures[1]}" >>"$work/figures/$1-p50"
  echo "${figures[2]}" >>"$work/figures/$1-p99"
}

# name, and how it is loaded
readonly cases=(
  "nginx-1-path load $nginx_port json1 1 64" "spoor-1-path load $memory_port json1 1 64"
  "nginx-1-path-2-threads load $nginx_port json1 2 64" "spoor-1-path-2-threads load $memory_port json1 2 64"
  "nginx-1-path-unix load_unix $work/nginx.sock" "spoor-1-path-unix load_unix $work/memory/sock"
  "spoor-1-new-memory load $memory_port new1 1 64 1" "spoor-1-new-disk load $disk_port new1 1 64 1"
  "spoor-1-new-disk-alone load $disk_port new1 1 1 1" "syncs syncs"
  "nginx-1000-paths load $nginx_port json1000 1 8" "spoor-1000-known load $memory_port json1000 1 8"
  "spoor-1000-known-text load $memory_port text1000 1 8" "spoor-1000-new load $memory_port new1000 1 8 1"
)
for ((round = first_round; round <= rounds; ++round)); do
  for each in "${cases[@]}"; do
    read -ra how <<<"$each"
    [[ $each != *-new* ]] || open_cycle
    measure "${how[@]}"
  done
  measure quiet load "$memory_port" json1 1 8
  # Also where it attacks somebody else: what it takes of the processors alone is no doing of the daemon's.
  for victim in "slowloris-elsewhere $nginx_port" "slowloris $memory_port"; do
    read -r name port <<<"$victim"
    rm -f "$work/slow"
    slowloris "$port" &
    pids+=($!)
    until [[ -e $work/slow ]]; do kill -0 "${pids[-1]}"; done
    measure "$name" load "$memory_port" json1 1 8
    kill "${pids[-1]}"
    wait "${pids[-1]}" || true
    unset 'pids[-1]'
  done
done

# million NAME: a thousand paths a request
million() { awk -v rate="$(median "$1")" 'BEGIN { printf "%.2f", rate / 1000 }'; }

echo '8 connections: quiet, slowloris; 1: alone; else 64 for one path, 8 for 1000. syncs: dd of 100 bytes each'
printf '%-24s %28s %9s %9s\n' '' 'requests/s (least..most)' 'p50 us' 'p99 us'
for each in "${cases[@]}" quiet slowloris-elsewhere slowloris; do
  name=${each%% *}
  # shellcheck disable=SC2046,SC2183  # words
  printf '%-24s %10.0f (%.0f..%.0f) %9.0f %9.0f\n' "$name" $(stats "$name") "$(median "$name-p50")" "$(median "$name-p99")"
done
echo "one path: $(ratio spoor-1-path nginx-1-path) x nginx (wanted: 0.75); with two threads of load" \
  "$(ratio spoor-1-path-2-threads nginx-1-path-2-threads)"
echo "over a Unix socket: $(ratio spoor-1-path-unix nginx-1-path-unix) x nginx; durability disk:" \
  "$(ratio spoor-1-new-disk spoor-1-new-memory) x memory (wanted: 0.6); of one connection:" \
  "$(ratio spoor-1-new-disk-alone syncs) x the synced writes of the disk (wanted: 0.6)"
echo "1000 paths, of nginx, which parses none: known $(ratio spoor-1000-known nginx-1000-paths) (wanted: 0.3), new" \
  "$(ratio spoor-1000-new nginx-1000-paths) (wanted: 0.12)"
echo "1000 paths: $(million spoor-1000-known) M known/s, as text $(million spoor-1000-known-text)," \
  "$(million spoor-1000-new) M new/s"
echo "p99 during a slowloris of 500: $(ratio slowloris-p99 quiet-p99) x the quiet one (wanted: below 10); at another" \
  "server: $(ratio slowloris-elsewhere-p99 quiet-p99) x"
