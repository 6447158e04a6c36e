#!/bin/bash
# A cluster of three nodes on this machine, their drives filled with copies of real trees: first scans,
# then real changes, each told to another node than the one that has it, then scans that walk only
# what changed, their totals held against find's. Leaves nothing behind; with --keep, once Ctrl-C stops the cluster. Run
# by `./run demo`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly keep=$*
case $keep in '' | --keep) ;; *) echo "Usage: ./run demo [--keep]" >&2; exit 2 ;; esac
readonly bin=$PWD/build/release
readonly nodes=(node1 node2 node3)
readonly dirs_wanted=1500 share_max_percent=5
work=$(mktemp -d "${TMPDIR:-/tmp}/spoor-demo-XXXXXX")
readonly work
declare -A port pid full_seconds
failures=0

clean_up() {
  for name in "${!pid[@]}"; do kill "${pid[$name]}" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

say() { printf '\n%s\n' "$*"; }
spoor() { "$bin/spoor" --config "$work/$1/spoor.json" "${@:2}"; }
drive() { echo "$work/$1/drive"; }

# field JSON NAME: a number or a word at the top of what `spoor --json` prints.
field() { sed -nE 's/^  "'"$2"'": "?([^",]*)"?,?$/\1/p' <<<"$1" | head -n 1; }

free_port() {
  local candidate
  for _ in {1..100}; do
    candidate=$((20000 + RANDOM % 12000))  # below those the kernel gives to outgoing connections
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$candidate") 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "no free port found" >&2
  return 1
}

# ---- the cluster ------------------------------------------------------------------------------

configure() {
  local name=$1 peers='' other
  for other in "${nodes[@]}"; do
    [[ $other == "$name" ]] || peers+="${peers:+, }\"http://127.0.0.1:${port[$other]}\""
  done
  mkdir -p "$work/$name/drive"
  cat >"$work/$name/spoor.json" <<EOF
{
  "node": {"name": "$name", "cluster": "demo", "data_dir": "$work/$name/data"},
  "drives": ["$work/$name/drive"],
  "listen": [{"address": "127.0.0.1", "port": ${port[$name]}, "insecure": true}],
  "peers": {"static": [$peers]},
  // Every scan opens a cycle of its own; in production the scans of a minute share one.
  "scan": {"min_cycle_age": "1ms"}
}
EOF
}

start() {
  local name=$1
  "$bin/spoord" --config "$work/$name/spoor.json" 2>"$work/$name/log" &
  pid[$name]=$!
  for _ in {1..100}; do
    if spoor "$name" status >/dev/null 2>&1; then return; fi
    kill -0 "${pid[$name]}" 2>/dev/null || break
    sleep 0.1
  done
  echo "$name did not start:" >&2
  cat "$work/$name/log" >&2
  return 1
}

# fill NODE TREE...: copies of real trees, until there are enough directories to make it interesting.
fill() {
  local name=$1 round=0 target
  shift
  while (($(find "$(drive "$name")" -type d | wc -l) < dirs_wanted && ++round < 50)); do
    target=$(drive "$name")/$name-data/copy-$round
    mkdir -p "$target"
    rsync -a --max-size=16k --no-owner --no-group "$@" "$target/" 2>/dev/null || true
  done
}

# ---- what is shown ------------------------------------------------------------------------------

# Files, directories and bytes of a node's drive, by find.
truth() {
  local top
  top=$(drive "$1")
  find "$top" -mindepth 1 -path "$top/.spoor" -prune -o -printf '%y %s\n' |
    awk '{ if ($1 == "d") dirs++; else files++; if ($1 == "f") bytes += $2 }
         END { printf "%d files, %d directories, %d bytes\n", files, dirs, bytes }'
}

told() {
  local json
  json=$(spoor "$1" usage --json)
  echo "$(field "$json" files) files, $(field "$json" dirs) directories, $(field "$json" bytes) bytes"
}

header() {
  printf '  %-6s %-12s %9s of %-9s %8s %9s %9s  %s\n' node scan walked all share seconds 'of full' totals
}

# scan NODE: one scan, and a line of the table.
scan() {
  local name=$1 json walked all seconds mode totals=same
  json=$(spoor "$name" scan --json)
  mode=$(field "$json" mode) walked=$(field "$json" dirs_walked) seconds=$(field "$json" duration_s)
  all=$((walked + $(field "$json" dirs_skipped)))
  [[ $mode == full ]] && full_seconds[$name]=$seconds
  if [[ $(truth "$name") != "$(told "$name")" ]]; then
    totals="DIFFERENT: find says $(truth "$name"), spoor $(told "$name")"
    failures=$((failures + 1))
  fi
  if [[ $mode != full ]] && ((walked * 100 >= all * share_max_percent)); then
    totals+=", but $share_max_percent % or more were walked"
    failures=$((failures + 1))
  fi
  awk -v name="$name" -v mode="$mode" -v walked="$walked" -v all="$all" -v seconds="$seconds" \
    -v full="${full_seconds[$name]}" -v totals="$totals" 'BEGIN {
      printf "  %-6s %-12s %9d of %-9d %6.2f %% %9.3f %7.1f %%  %s\n",
        name, mode, walked, all, 100 * walked / all, seconds, 100 * seconds / full, totals }'
}

scan_all() {
  header
  for name in "${nodes[@]}"; do scan "$name"; done
}

# ---- the story ------------------------------------------------------------------------------------

for name in "${nodes[@]}"; do port[$name]=$(free_port); done
for name in "${nodes[@]}"; do configure "$name"; done
say "Filling three drives with copies of parts of /usr/include and /usr/share ..."
fill node1 /usr/include
fill node2 /usr/share/doc
fill node3 /usr/share/locale /usr/share/perl /usr/share/doc
for name in "${nodes[@]}"; do start "$name"; done
for name in "${nodes[@]}"; do echo "  $name at http://127.0.0.1:${port[$name]}: $(truth "$name")"; done

say "First scans: nothing is known yet, so everything is walked once."
scan_all

say "Nothing changed:"
scan_all

say "cp and rm on node1, marked through node2:"
top=$(drive node1)/node1-data
mkdir "$top/copy-1/new"
cp "$bin"/../../README.md "$bin"/../../LICENSE "$top/copy-1/new/"
victim=$(find "$top" -type f | sort | sed -n 100p)
rm "$victim"
printf '%s\n' node1-data/copy-1/new/README.md node1-data/copy-1/new/LICENSE "${victim#"$(drive node1)/"}" |
  spoor node2 mark --kind file -
scan_all

say "mv of a directory on node2, marked through node3:"
from=$(find "$(drive node2)/node2-data/copy-1" -mindepth 2 -maxdepth 2 -type d | sort | sed -n 3p)
to=$(dirname "$from")/moved-here
mv "$from" "$to"
spoor node3 mark "${from#"$(drive node2)/"}" "${to#"$(drive node2)/"}"
scan_all

say "rm -r and rsync on node3, marked through node1 with what rsync itself lists:"
top=$(drive node3)/node3-data/copy-1
gone=$(find "$top" -mindepth 2 -maxdepth 2 -type d | sort | sed -n 1p)
rm -r "$gone"
mkdir -p "$work/incoming/release/notes"
cp LICENSE README.md "$work/incoming/release/notes/"
# Marks come after the change: rsync names a file before it is in its place, so its list is kept.
rsync -a --out-format='node3-data/copy-1/%n' "$work/incoming/" "$top/" >"$work/changed"
echo "${gone#"$(drive node3)/"}" >>"$work/changed"
spoor node1 mark - <"$work/changed"
scan_all

say "A node that is down leaves the scan partial, not full; its marks are walked when it is back:"
touch "$(drive node1)/node1-data/copy-1/new/while-node3-was-down"
spoor node3 mark --kind file node1-data/copy-1/new/while-node3-was-down
kill "${pid[node3]}"
wait "${pid[node3]}"
unset 'pid[node3]'
code=0
spoor node1 scan | sed -n '/answered/,/left/p' || true
spoor node1 scan >/dev/null || code=$?
echo "  (exit code $code: done in part)"
start node3
header
scan node1

say "How full a filter is, and what it costs, is always in sight (spoor status):"
spoor node1 status | sed -n '/^cycle.*items/,$p' | head -n 6

if ((failures > 0)); then
  say "$failures rows above are not as they should be."
  exit 1
fi
cat <<'EOF'

Every total equals find's, and unchanged directories were not touched.
Where to go on: README.md has a first session by hand; docs/architecture.md how it works;
docs/cli.md and docs/http-api.md how to mark from your own programs.
EOF
if [[ -n $keep ]]; then
  say "The cluster runs until Ctrl-C, which removes it. The page of each node:"
  for name in "${nodes[@]}"; do echo "  $name at http://127.0.0.1:${port[$name]}/"; done
  echo "The command line, in another terminal: $bin/spoor --config $work/node1/spoor.json status"
  trap 'exit 0' INT TERM
  wait
fi
