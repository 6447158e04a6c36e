#!/bin/bash
# How long it takes from 100 changed files to their copies, by the recipes for rsync, rclone and borg (the mark and the
# scan included), beside a run of each program over the whole drive. Rounds alternate between the two; the copies are
# local, and all caches are warm. Figures are medians, and the fastest and the slowest run.
#   adapters_bench.sh SPOORD SPOOR [DIRECTORIES], of 100 files each, or SPOORD SPOOR --short: a small tree, once: these
#   figures do not measure speed
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C  # a decimal point in $EPOCHREALTIME and in what awk reads

spoor=$(realpath "$2")  # the recipes call it
readonly spoord=$1 spoor
if [[ ${3:-} == --short ]]; then
  directories=30 rounds=1
else
  directories=${3:-10000} rounds=3
fi
readonly directories rounds files_in_each=100 changed=100 wanted_s=5
recipes=$(realpath "$(dirname "$0")/../../docs/recipes")
work=$(mktemp -d "${TMPDIR:-/tmp}/spoor-bench-XXXXXX")
readonly recipes work drive=$work/drive
daemon=

clean_up() {
  # In braces: bash reports what it kills.
  { [[ -z $daemon ]] || kill -KILL "$daemon"; wait "$daemon"; } 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

fail() {  # message
  echo "adapters_bench: $1" >&2
  tail -n 20 "$work/log" >&2
  exit 1
}

spoor() { "$spoor" --config "$work/spoor.json" "$@"; }

start() {
  mkdir -p "$drive" "$work/data"
  cat >"$work/spoor.json" <<JSON
{"node": {"name": "node", "data_dir": "$work/data"}, "drives": ["$drive"], "listen": [{"unix": "$work/sock"}],
 "scan": {"min_cycle_age": "0s", "file_feed": true}}
JSON
  "$spoord" --config "$work/spoor.json" >"$work/log" 2>&1 &
  daemon=$!
  until [[ -S $work/sock ]]; do
    kill -0 "$daemon" 2>/dev/null || fail "spoord does not start"
    sleep 0.05
  done
}

make_tree() {
  perl -e '
    my ($top, $directories, $files) = @ARGV;
    for my $d (0 .. $directories - 1) {
      my $directory = sprintf("%s/%d/%d", $top, $d / 100, $d);
      mkdir sprintf("%s/%d", $top, $d / 100) if $d % 100 == 0;
      mkdir $directory or die "$directory: $!";
      for my $f (0 .. $files - 1) {
        open my $file, ">", "$directory/file-$f" or die "$directory/file-$f: $!";
        print $file "$d $f\n";
        close $file or die "$directory/file-$f: $!";
      }
    }' "$drive" "$directories" "$files_in_each"
}

# change NUMBER: appends to $changed files in as many directories as there are, and lists them in $work/changed
change() {
  perl -e '
    my ($top, $directories, $changed, $number) = @ARGV;
    for my $i (0 .. $changed - 1) {
      my $d = int($i * $directories / $changed);
      my $path = sprintf("%d/%d/file-%d", $d / 100, $d, ($number + $i) % 100);
      open my $file, ">>", "$top/$path" or die "$path: $!";
      print $file "$number\n";
      print "$path\n";
    }' "$drive" "$directories" "$changed" "$1" >"$work/changed"
}

mark_and_scan() {
  spoor mark --kind file - <"$work/changed"
  spoor scan
}

by_recipe_rsync() { "$recipes/spoor-rsync" "$drive" "$work/rsync" rsync; }
by_recipe_rclone() { "$recipes/spoor-rclone" "$drive" "$work/rclone" rclone; }
by_recipe_borg() { "$recipes/spoor-borg" backup "$drive" borg; }
in_full_rsync() { rsync -a --delete --exclude=/.spoor "$drive/" "$work/rsync/"; }
in_full_rclone() { rclone sync --skip-links --exclude '/.spoor/**' "$drive" "$work/rclone"; }
in_full_borg() { (cd "$drive" && borg create --exclude pp:.spoor "::plain-$round" .); }

# measure FIGURE COMMAND...: adds the seconds that it takes to the figure
measure() {
  local began=${EPOCHREALTIME/./}
  "${@:2}" >"$work/log" 2>&1 || fail "$1 fails"
  awk -v us="$((${EPOCHREALTIME/./} - began))" 'BEGIN { print us / 1e6 }' >>"$work/$1"
}

by_recipe() { mark_and_scan && "by_recipe_$1"; }

# The last copy of a file that changed.
check_copy() {  # program
  local path
  path=$(head -n 1 "$work/changed")
  [[ $1 == borg ]] || cmp "$drive/$path" "$work/$1/$path" >"$work/log" 2>&1 || fail "$1 has not copied $path"
}

line() {  # program
  local recipe full
  recipe=$(sort -g "$work/recipe-$1" | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)], v[1], v[NR]}')
  full=$(sort -g "$work/full-$1" | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)], v[1], v[NR]}')
  echo "$1 $(<"$work/first-$1") $recipe $full" | awk '{
    printf "%-7s %8.2f s   %6.2f (%.2f..%.2f) s   %7.2f (%.2f..%.2f) s   %6.1f\n", $1, $2, $3, $4, $5, $6, $7, $8, $6 / $3 }'
}

export SPOOR="$spoor --config $work/spoor.json" RCLONE_CONFIG=$work/rclone.conf STATE_DIRECTORY=$work/state
export BORG_REPO=$work/borg BORG_BASE_DIR=$work/borg-base BORG_PASSPHRASE=secret
touch "$RCLONE_CONFIG"
start
make_tree
mkdir "$BORG_BASE_DIR"
borg init --encryption repokey-blake2 >"$work/log" 2>&1 || fail "borg init fails"
measure first-scan spoor scan
for program in rsync rclone borg; do measure "first-$program" "by_recipe_$program"; done
for ((round = 1; round <= rounds; ++round)); do
  for program in rsync rclone borg; do
    spoor changes --consumer "$program" --commit --quiet  # what the others changed is copied later, by a full run
    change "$((round * 10))"
    measure "recipe-$program" by_recipe "$program"
    check_copy "$program"
    change "$((round * 10 + 1))"
    measure "full-$program" "in_full_$program"
    check_copy "$program"
    measure other mark_and_scan
  done
done

echo "$((directories * files_in_each)) files, $changed of them changed; rounds: $rounds; $(nproc) processors. The first scan:" \
  "$(<"$work/first-scan") s."
echo "program  first copy   mark, scan and recipe, wanted: $wanted_s   all of the drive   ratio"
for program in rsync rclone borg; do line "$program"; done
