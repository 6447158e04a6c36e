#!/bin/bash
# How long it takes from 100 changed files to their copies, by the recipes for rsync, rclone and borg (the mark and the
# scan included), beside a run of each program over the whole drive. Rounds alternate between the two; the copies are
# local, and all caches are warm. Figures are medians, and the fastest and the slowest run.
#   adapters_bench.sh SPOORD SPOOR [DIRECTORIES], of 100 files each, or SPOORD SPOOR --short: a small tree, once: these
#   figures do not measure speed
# shellcheck source=tests/bench/bench.sh
source "$(dirname "$0")/bench.sh"

spoor=$(realpath "$2")  # the recipes call it
readonly spoor
if [[ ${3:-} == --short ]]; then
  directories=30 rounds=1
else
  directories=${3:-10000} rounds=3
fi
readonly directories rounds files_in_each=100 changed=100 wanted_s=5
recipes=$(realpath "$(dirname "$0")/../../docs/recipes")
readonly recipes drive=$work/node/drive

spoor() { "$spoor" --config "$work/node/spoor.json" "$@"; }

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

by_recipe() { mark_and_scan && "by_recipe_$1"; }

# The last copy of a file that changed.
check_copy() {  # program
  local path
  path=$(head -n 1 "$work/changed")
  [[ $1 == borg ]] || cmp "$drive/$path" "$work/$1/$path" >"$work/output" 2>&1 || fail "$1 has not copied $path" "$work/output"
}

line() {  # program
  echo "$1 $(median "first-$1") $(stats "recipe-$1") $(stats "full-$1")" | awk '{
    for (i = 2; i <= 8; ++i) $i /= 1000
    printf "%-7s %8.2f s   %6.2f (%.2f..%.2f) s   %7.2f (%.2f..%.2f) s   %6.1f\n", $1, $2, $3, $4, $5, $6, $7, $8, $6 / $3 }'
}

export SPOOR="$spoor --config $work/node/spoor.json" RCLONE_CONFIG=$work/rclone.conf STATE_DIRECTORY=$work/state
export BORG_REPO=$work/borg BORG_BASE_DIR=$work/borg-base BORG_PASSPHRASE=secret
touch "$RCLONE_CONFIG"
start_spoord node '"scan": {"min_cycle_age": "0s", "file_feed": true}'
await "$work/node/log" test -S "$work/node/sock"
make_tree
mkdir "$BORG_BASE_DIR"
borg init --encryption repokey-blake2 >"$work/output" 2>&1 || fail "borg init fails" "$work/output"
timed first-scan spoor scan
for program in rsync rclone borg; do timed "first-$program" "by_recipe_$program"; done
for ((round = 1; round <= rounds; ++round)); do
  for program in rsync rclone borg; do
    spoor changes --consumer "$program" --commit --quiet  # what the others changed is copied later, by a full run
    change "$((round * 10))"
    timed "recipe-$program" by_recipe "$program"
    check_copy "$program"
    change "$((round * 10 + 1))"
    timed "full-$program" "in_full_$program"
    check_copy "$program"
    timed other mark_and_scan
  done
done

echo "$((directories * files_in_each)) files, $changed of them changed; rounds: $rounds; $(nproc) processors. The first scan:" \
  "$(awk -v ms="$(median first-scan)" 'BEGIN { print ms / 1000 }') s."
echo "program  first copy   mark, scan and recipe, wanted: $wanted_s   all of the drive   ratio"
for program in rsync rclone borg; do line "$program"; done
