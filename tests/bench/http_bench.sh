#!/bin/bash
# POST /v1/marks, loaded by wrk, beside nginx that answers the same bodies with 204: by turns in one run, medians of
# the rounds. Durability is `memory`, so that the disk is not measured (that is `./run bench durability`).
set -euo pipefail

readonly spoord=$1 rounds=${2:-5} seconds=${3:-3}
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

mkdir "$work/drive" "$work/data"
cat >"$work/spoor.json" <<JSON
{"node": {"name": "bench", "data_dir": "$work/data"}, "drives": ["$work/drive"],
 "tracker": {"durability": "memory"}, "listen": [{"address": "127.0.0.1", "port": 0}]}
JSON
"$spoord" --config "$work/spoor.json" 2>"$work/spoord.log" &
pids+=($!)
spoor_port=$(port_in "$work/spoord.log" "$!")

readonly nginx_port=$((spoor_port == 7441 ? 7442 : 7441))
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
  server { listen 127.0.0.1:$nginx_port; location / { return 204; } }
}
CONF
"$nginx" -c "$work/nginx.conf" -p "$work" 2>>"$work/nginx.log" &
pids+=($!)
until (exec 3<>"/dev/tcp/127.0.0.1/$nginx_port") 2>/dev/null; do
  kill -0 "$!" || { cat "$work/nginx.log" >&2; exit 1; }
done

# Bodies: one path; a thousand known ones; a thousand that nobody has marked yet.
cat >"$work/json1.lua" <<'LUA'
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"paths":["bucket-17/photos/2026/november/holiday/img-000123.jpg"]}'
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
load() {  # port script threads connections
  wrk -t"$3" -c"$4" -d"$seconds" --latency -s "$work/$2.lua" "http://127.0.0.1:$1/v1/marks" >"$work/wrk.log"
  if grep -q 'Non-2xx\|Socket errors' "$work/wrk.log"; then cat "$work/wrk.log" >&2; exit 1; fi
  awk '
    function us(text) { return text ~ /us$/ ? text + 0 : text ~ /ms$/ ? text * 1000 : text * 1000000 }
    $1 == "50%" { p50 = us($2) }
    $1 == "99%" { p99 = us($2) }
    $1 == "Requests/sec:" { rate = $2 }
    END { print rate, p50, p99 }' "$work/wrk.log"
}

# name script threads connections server
readonly cases=(
  "nginx-1-path json1 1 64 $nginx_port" "spoor-1-path json1 1 64 $spoor_port"
  "nginx-1-path-2-threads json1 2 64 $nginx_port" "spoor-1-path-2-threads json1 2 64 $spoor_port"
  "nginx-1000-paths json1000 1 8 $nginx_port" "spoor-1000-known json1000 1 8 $spoor_port"
  "spoor-1000-known-text text1000 1 8 $spoor_port" "spoor-1000-new new1000 1 8 $spoor_port"
)
for ((round = 0; round <= rounds; ++round)); do  # the first warms up
  for each in "${cases[@]}"; do
    read -r name script threads connections port <<<"$each"
    figures=$(load "$port" "$script" "$threads" "$connections")
    if ((round > 0)); then echo "$name $figures" >>"$work/figures"; fi
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
    printf "%-24s %28s %9s %9s\n", "", "requests/s (least..most)", "p50 us", "p99 us"
    for (k = 1; k <= known; ++k) {
      rate = median(names[k], 2)
      rates[names[k]] = rate
      printf "%-24s %10.0f (%.0f..%.0f) %9.0f %9.0f\n", names[k], rate, low, high, median(names[k], 3),
             median(names[k], 4)
    }
    printf "one path: %.2f x nginx (wanted: 0.75); with two threads of load %.2f\n",
           rates["spoor-1-path"] / rates["nginx-1-path"],
           rates["spoor-1-path-2-threads"] / rates["nginx-1-path-2-threads"]
    printf "1000 paths: %.2f M known/s (wanted: 4), as text %.2f, %.2f M new/s (wanted: 2)\n",
           rates["spoor-1000-known"] / 1000, rates["spoor-1000-known-text"] / 1000, rates["spoor-1000-new"] / 1000
  }' "$work/figures"
