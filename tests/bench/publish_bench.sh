#!/bin/bash
# How fast spoor-publish publishes everything that exists to a NATS server with an empty stream on disk and to a
# PostgreSQL server, both on this machine, and the memory that it takes; beside a program that publishes as many messages
# by the asynchronous calls of the NATS library, and a COPY of as many rows by psql into a table of the same columns. Runs
# of the four alternate. Figures are medians, and the slowest and the fastest run.
#   publish_bench.sh SPOORD SPOOR SPOOR_PUBLISH NATS_PEER [DIRECTORIES], of 1,000 files each, or ... --short: a small
#   tree, once: these figures do not measure speed
# shellcheck source=tests/bench/bench.sh
source "$(dirname "$0")/bench.sh"

readonly spoor=$2 publish=$3 nats_peer=$4
if [[ ${5:-} == --short ]]; then
  directories=10 rounds=1
else
  directories=${5:-1000} rounds=5
fi
readonly directories rounds files_in_each=1000
readonly drive=$work/node/drive
postgres_programs=$(find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -n 1)
readonly postgres_programs

end() {  # PostgreSQL ends its processes itself
  [[ ! -s $work/postgres/data/postmaster.pid ]] ||
    as_postgres "$postgres_programs/pg_ctl" stop -D "$work/postgres/data" --mode=immediate >/dev/null || true
  clean_up
}
trap end EXIT

as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
sql() { psql --quiet --no-psqlrc --tuples-only --no-align --host="$work/postgres" --username=postgres "$@"; }

start_node() {
  start_spoord node '"scan": {"min_cycle_age": "0s", "file_feed": true},
    "publish": {"sinks": [{"name": "nats", "url": "nats://127.0.0.1:'"$nats_port"'"}]}'
  await "$work/node/log" test -S "$work/node/sock"
  cp "$work/node/spoor.json" "$work/spoor-nats.json"
  sed 's#nats://[^"]*#postgresql:///postgres?host='"$work"'/postgres#; s#"name": "nats"#"name": "postgres", "user": "postgres"#' \
    "$work/spoor-nats.json" >"$work/spoor-postgres.json"
  perl -e '
    my ($top, $directories, $files) = @ARGV;
    for my $d (0 .. $directories - 1) {
      mkdir sprintf("%s/bucket-%d", $top, $d) or die $!;
      for my $f (1 .. $files) { open(my $file, ">", sprintf("%s/bucket-%d/object-%05d.dat", $top, $d, $f)) or die $!; }
    }' "$drive" "$directories" "$files_in_each"
  "$spoor" --config "$work/spoor-nats.json" scan --json >"$work/scan.json"
}

start_nats() {
  mkdir "$work/nats"
  cat >"$work/nats.conf" <<CONF
listen: "127.0.0.1:-1"
jetstream: {store_dir: "$work/nats"}
ports_file_dir: "$work/nats"
CONF
  nats-server -c "$work/nats.conf" >"$work/log" 2>&1 &
  pids+=($!)
  await "$work/log" test -s "$work/nats/nats-server_${pids[-1]}.ports"
  nats_port=$(jq -r '.nats[0]' "$work/nats/nats-server_${pids[-1]}.ports")
  nats_port=${nats_port##*:}
}

# change_stream VERB BODY
change_stream() {
  local line=
  exec 3<>"/dev/tcp/127.0.0.1/$nats_port"
  # shellcheck disable=SC2016  # a subject of NATS
  printf 'CONNECT {"verbose":false}\r\nSUB reply 1\r\nPUB $JS.API.STREAM.%s.bench reply %d\r\n%s\r\n' "$1" ${#2} "$2" >&3
  until [[ $line == *'"type":'* ]]; do IFS= read -r -u 3 -t 30 line || fail 'no stream' "$work/log"; done
  exec 3>&-
  [[ $line != *'"error":'* ]] || fail "no stream: $line" "$work/log"
}

create_stream() { change_stream CREATE '{"name":"bench","subjects":["spoor.changes"],"storage":"file"}'; }

start_postgres() {
  install -d -o postgres "$work/postgres"
  chmod o+x "$work"
  as_postgres "$postgres_programs/initdb" --auth=trust --encoding=UTF8 --no-sync "$work/postgres/data" >"$work/log"
  as_postgres "$postgres_programs/postgres" -D "$work/postgres/data" -k "$work/postgres" -h '' >"$work/log" 2>&1 &
  pids+=($!)
  await "$work/log" sql -c 'SELECT 1' >/dev/null
}

# publish_to SINK: adds the events a second to figures/SINK, and the memory in MiB to figures/SINK-memory
publish_to() {
  local began=$EPOCHREALTIME events
  command time --format=%M --output="$work/memory" "$publish" --config "$work/spoor-$1.json" --once >"$work/log" 2>&1 ||
    fail "spoor-publish fails" "$work/log"
  local ended=$EPOCHREALTIME
  events=$(jq '.sinks[0].events' "$work/node/data/publish.json")
  ((events > directories * files_in_each)) || fail "only $events events" "$work/log"
  awk -v n="$events" -v s="$began" -v e="$ended" 'BEGIN {print n / (e - s)}' >>"$work/figures/$1"
  awk '{print $1 / 1024}' "$work/memory" >>"$work/figures/$1-memory"
  "$spoor" --config "$work/spoor-$1.json" changes --consumer "publish:$1" --forget
}

publish_by_peer() {
  local began=$EPOCHREALTIME count=$((directories * files_in_each))
  "$nats_peer" "nats://127.0.0.1:$nats_port" "$count" "$round" >"$work/log" 2>&1 || fail "nats_peer fails" "$work/log"
  awk -v n="$count" -v s="$began" -v e="$EPOCHREALTIME" 'BEGIN {print n / (e - s)}' >>"$work/figures/nats-peer"
}

copy() {
  local began=$EPOCHREALTIME
  sql -c 'CREATE TABLE copied (LIKE spoor.changes INCLUDING ALL)' -c '\copy copied FROM '"'$work/rows'"
  awk -v n="$rows" -v s="$began" -v e="$EPOCHREALTIME" 'BEGIN {print n / (e - s)}' >>"$work/figures/copy"
  sql -c 'DROP TABLE copied'
}

# shellcheck disable=SC2046,SC2183  # words
figure() { printf '%-18s %10.0f %s (%.0f..%.0f)\n' "$1" "$(median "$1")" "$2" $(stats "$1" | cut -d ' ' -f 2-); }  # name unit

start_nats
start_postgres
start_node
for ((round = 0; round < rounds; ++round)); do
  create_stream
  publish_to nats
  change_stream DELETE ''
  create_stream
  publish_by_peer
  change_stream DELETE ''
  publish_to postgres
  if ((round == 0)); then
    sql -c '\copy spoor.changes TO '"'$work/rows'"
    rows=$(wc -l <"$work/rows")
  fi
  copy
done
figure nats 'events/s; wanted 100,000'
figure nats-peer 'messages/s by the library'
figure nats-memory 'MiB; wanted 64 at most'
figure postgres 'events/s; wanted 20,000'
figure postgres-memory 'MiB; wanted 64 at most'
figure copy 'rows/s by psql'
