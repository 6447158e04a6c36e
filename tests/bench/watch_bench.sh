#!/bin/bash
# What spoor-watch costs, on ext4 in loop-mounted images: how long it takes to set up, beside inotifywait and lsyncd on
# the same trees; how much slower an untar and a bare create loop are while it watches; its CPU time and memory.
# Rounds alternate between the programs, and between unwatched and watched; figures are medians of the rounds. The
# trees are in the cache. Needs root, for the mounts, and 4 GB in $TMPDIR.
#   watch_bench.sh SPOORD SPOOR_WATCH [ROUNDS], or SPOORD SPOOR_WATCH --short: small trees, once: these figures do not
#   measure speed
# shellcheck source=tests/bench/bench.sh
source "$(dirname "$0")/bench.sh"
PATH=$PATH:/usr/sbin:/sbin

readonly spoor_watch=$2
first_round=0  # it warms up, and does not count
if [[ ${3:-} == --short ]]; then
  first_round=1 rounds=1 small_tree=1000 large_tree=10000 untar_files=5000 create_files=5000
else
  rounds=${3:-5} small_tree=10000 large_tree=1000000 untar_files=100000 create_files=20000
fi
readonly first_round rounds small_tree large_tree untar_files create_files
readonly untar_dirs=100 seconds_max=120 max_user_watches=/proc/sys/fs/inotify/max_user_watches
if [[ $(id -u) -ne 0 ]]; then
  echo "watch_bench: needs root to mount file systems and to watch them; nothing is measured"
  exit 0
fi
ticks_per_second=$(getconf CLK_TCK)
watches_before=$(<"$max_user_watches")
readonly ticks_per_second watches_before
declare -A pid=()  # by the name of the process

end() {
  # A background process that is signalled before it has executed its program still has the traps.
  [[ $BASHPID == "$$" ]] || return 0
  local running mount
  mapfile -t running <<<"$(jobs -p)"  # not words: a trap runs with the IFS of a read that it interrupts
  # Not TERM: a process that does not end would keep a file system busy.
  { [[ -z ${running[*]} ]] || kill -KILL "${running[@]}"; wait; } 2>/dev/null || true
  for mount in "$work"/*/drive; do
    ! mountpoint -q "$mount" || umount "$mount" || umount --lazy "$mount" || true
  done
  [[ $(<"$max_user_watches") == "$watches_before" ]] || echo "$watches_before" >"$max_user_watches"
  clean_up
}
trap end EXIT

# ---- processes ---------------------------------------------------------------------------------

# start NAME LOG TEXT COMMAND...: returns once the log has TEXT
start() {
  : >"$2"
  "${@:4}" 2>>"$2" &
  pid[$1]=$!
  until grep -q "$3" "$2"; do
    kill -0 "${pid[$1]}" 2>/dev/null || fail "$1 does not start" "$2"
    sleep 0.05
  done
}

# stop NAME SIGNAL: sets $status to what it ends with
stop() {
  status=0
  { kill "-$2" "${pid[$1]}" && wait "${pid[$1]}"; } 2>/dev/null || status=$?
  unset "pid[$1]"
}

# The configuration file that the daemon and spoor-watch share, and the daemon, for the drive of this name.
start_daemon() {
  cat >"$work/$1/spoor.json" <<JSON
{"node": {"name": "$1", "data_dir": "$work/$1/data"}, "drives": ["$work/$1/drive"],
 "listen": [{"unix": "$work/$1/spoor.sock"}], "watch": {"drives": "all", "batch": "20ms"}}
JSON
  start spoord "$work/$1/spoord.log" 'listening on' "$spoord" --config "$work/$1/spoor.json"
}

# ---- drives ------------------------------------------------------------------------------------

# make_drive NAME SIZE [MKFS OPTIONS...]: an ext4 file system in a sparse image, mounted at $work/NAME/drive
make_drive() {
  local directory=$work/$1
  mkdir -p "$directory/drive" "$directory/data"
  truncate -s "$2" "$directory/image"
  mkfs.ext4 -q -F "${@:3}" "$directory/image"
  # noinit_itable: no kernel thread initialises inode tables while something is measured.
  if ! mount -o loop,noinit_itable "$directory/image" "$directory/drive" 2>"$directory/mount.log"; then
    echo "watch_bench: an image cannot be mounted; nothing is measured: $(<"$directory/mount.log")"
    exit 0
  fi
}

remove_drive() {  # name
  stop spoord TERM
  ((status == 0)) || fail "spoord ended with $status on SIGTERM" "$work/$1/spoord.log"
  umount "$work/$1/drive"
  rm "$work/$1/image"
}

# make_tree DIRECTORY COUNT: so many directories, on the third level of directories of 100 each
make_tree() {
  perl -e '
    chdir $ARGV[0] or die "$ARGV[0]: $!";
    for my $i (0 .. $ARGV[1] - 1) {
      my ($top, $middle) = (int $i / 10000, int $i / 100);
      mkdir $top if $i % 10000 == 0;
      mkdir "$top/$middle" if $i % 100 == 0;
      mkdir "$top/$middle/$i" or die "$top/$middle/$i: $!";
    }' "$1" "$2"
}

# make_tar FILE DIRECTORY: $untar_files files of up to 2 kB, made and removed in this directory
make_tar() {
  mkdir "$2"
  perl -e '
    my ($source, $directories, $files) = @ARGV;
    chdir $source or die "$source: $!";
    for my $i (0 .. $files - 1) {
      my $directory = "directory-" . $i % $directories;
      mkdir $directory if $i < $directories;
      open my $file, ">", "$directory/$i" or die "$directory/$i: $!";
      print $file "$i\n" x ($i % 300);
      close $file or die "$directory/$i: $!";
    }' "$2" "$untar_dirs" "$untar_files"
  tar -cf "$1" -C "$2" .
  rm -rf "$2"
}

# ---- set-up ------------------------------------------------------------------------------------

# us_until TEXT SIGNAL COMMAND...: sets $us to the microseconds until standard error of the command has a line with
# TEXT, fork and exec included, or to "capped" if that takes longer than $seconds_max; $status to what the command ends
# with on SIGNAL. $work/set_up.log has the lines.
us_until() {
  local begun line stderr
  us=''
  rm -f "$work/stderr"
  mkfifo "$work/stderr"
  begun=${EPOCHREALTIME/./}
  "${@:3}" >/dev/null 2>"$work/stderr" &
  pid[set-up]=$!
  exec {stderr}<"$work/stderr"
  # Not `read -t`: bash crashes if a trapped signal arrives meanwhile.
  perl -e 'sleep shift; kill "KILL", shift' "$seconds_max" "${pid[set-up]}" &
  pid[timer]=$!
  while [[ -z $us ]] && read -r -u "$stderr" line; do
    [[ $line != *"$1"* ]] || us=$((${EPOCHREALTIME/./} - begun))
    printf '%s\n' "$line"
  done >"$work/set_up.log" 2>/dev/null  # bash reports that it was killed
  if [[ -z $us ]]; then  # it has ended
    ((${EPOCHREALTIME/./} - begun >= seconds_max * 1000000)) || fail "$3 ended before it was ready" "$work/set_up.log"
    us=capped
  fi
  stop timer KILL
  stop set-up "$2"
  timeout 1 cat <&"$stderr" >>"$work/set_up.log" || true  # a child of it may have it open
  exec {stderr}<&-
}

# Each of these sets $us for the drive of this name.
set_up_spoor_watch() {
  us_until watching TERM "$spoor_watch" --config "$work/$1/spoor.json"
  [[ $us != capped ]] || fail "spoor-watch is not ready after $seconds_max s" "$work/set_up.log"
  ((status == 0)) || fail "spoor-watch ended with $status on SIGTERM" "$work/set_up.log"
}

set_up_inotifywait() { us_until 'Watches established' KILL inotifywait -m -r "$work/$1/drive"; }

# lsyncd calls `init` once all watches are set; the `init` of its own configurations then starts rsync.
set_up_lsyncd() {
  cat >"$work/lsyncd.lua" <<LUA
settings { nodaemon = true }
sync {
  source = "$work/$1/drive",
  action = function(inlet) end,
  init = function(event) io.stderr:write("watches are set\n") event.inlet.discardEvent(event) end
}
LUA
  us_until 'watches are set' KILL lsyncd "$work/lsyncd.lua"
}

# Sets $programs to those that can be measured.
choose_programs() {
  local program wanted=$((large_tree + large_tree / 10 + 10000))
  ((watches_before >= wanted)) || { echo "$wanted" >"$max_user_watches"; } 2>/dev/null || true
  programs=(spoor_watch)
  for program in inotifywait lsyncd; do
    if ! command -v "$program" >/dev/null; then
      echo "$program is not installed, and is not measured"
    elif (($(<"$max_user_watches") < wanted)); then
      echo "$program is not measured: $max_user_watches cannot be raised to $wanted"
    else
      programs+=("$program")
    fi
  done
}

# measure_set_up NAME DIRECTORIES FIRST_ROUND
measure_set_up() {
  local round program
  local -A capped=()
  # Blocks of 1 KiB: a million directories take some 1.3 GB, and stay in the cache.
  make_drive "$1" 2G -b 1024 -N "$(($2 + $2 / 10 + 1000))"
  make_tree "$work/$1/drive" "$2"
  find "$work/$1/drive" -type d >/dev/null
  sync -f "$work/$1/drive"
  start_daemon "$1"
  for ((round = $3; round <= rounds; ++round)); do
    for program in "${programs[@]}"; do
      [[ -z ${capped[$program]:-} ]] || continue
      "set_up_$program" "$1"
      [[ $us != capped ]] || capped[$program]=1
      if ((round > 0)); then echo "$us" >>"$work/figures/set-up-$program-$1"; fi
    done
  done
  remove_drive "$1"
}

# ---- workloads ---------------------------------------------------------------------------------

# Each fills this directory, and prints the microseconds that pass meanwhile and those of CPU time that it takes.
untar() {
  perl -MTime::HiRes=time -e '
    my $begun = time;
    system(@ARGV) == 0 or die "@ARGV: $?";
    printf "%d ", (time() - $begun) * 1e6;
    my (undef, undef, $user, $system) = times;
    printf "%d\n", ($user + $system) * 1e6' tar -xf "$work/files.tar" -C "$1"
}

create() {
  perl -MPOSIX -MTime::HiRes=time -e '
    chdir $ARGV[0] or die "$ARGV[0]: $!";
    my ($begun, $cpu_begun) = (time, Time::HiRes::clock());
    for my $i (1 .. $ARGV[1]) {
      my $file = POSIX::open("file-$i", O_WRONLY | O_CREAT | O_EXCL, 0644) // die "file-$i: $!";
      POSIX::close($file);
    }
    printf "%d %d\n", (time() - $begun) * 1e6, (Time::HiRes::clock() - $cpu_begun) * 1e6' "$1" "$create_files"
}

# Sets $ticks to the user and system time of this process.
read_ticks() {
  local stat
  stat=$(<"/proc/${pid[$1]}/stat")
  read -ra stat <<<"${stat##*) }"  # from the third field on
  ticks=$((stat[11] + stat[12]))
}

# Waits until neither spoor-watch nor its daemon has anything to do. Sets $watch_ticks and $daemon_ticks to their CPU
# time, and $marked to the number of marks that the daemon has accepted.
wait_until_idle() {
  local before=-1000 deadline=$((SECONDS + 60)) ticks
  while true; do
    read_ticks spoor-watch
    watch_ticks=$ticks
    read_ticks spoord
    daemon_ticks=$ticks
    ((watch_ticks + daemon_ticks > before + 1)) || break
    ((SECONDS < deadline)) || fail "spoor-watch or spoord is not idle after 60 s" "$work/watch.log"
    before=$((watch_ticks + daemon_ticks))
    sleep 0.3
  done
  marked=$(curl -sf --unix-socket "$work/work/spoor.sock" http://localhost/metrics |
    sed -n 's/^spoor_marks_accepted_total //p')
}

# add WORKLOAD ROUND FIGURE NUMBER...: adds the numbers to the figures WORKLOAD-FIGURE-1 and so on, unless the round warms up
add() {
  local column
  for ((column = 1; column <= $# - 3 && $2 > 0; ++column)); do
    echo "${*:$((column + 3)):1}" >>"$work/figures/$1-$3-$column"
  done
}

# run_unwatched WORKLOAD ROUND: its figures are what the workload prints.
run_unwatched() {
  local took directory=$work/work/drive/$1-$2-unwatched
  mkdir "$directory"
  sync -f "$directory"
  took=$("$1" "$directory")
  # shellcheck disable=SC2086  # words
  add "$1" "$2" unwatched $took
  rm -rf "$directory"
  sync -f "$work/work/drive"
}

# run_watched WORKLOAD ROUND: its figures are what the workload prints; the CPU ticks of spoor-watch and of the daemon
# until both are idle again; the marks. The removal is watched as well, so that it shows in the peak memory.
run_watched() {
  local took marked watch_ticks daemon_ticks before directory=$work/work/drive/$1-$2-watched
  start spoor-watch "$work/watch.log" watching "$spoor_watch" --config "$work/work/spoor.json"
  mkdir "$directory"
  sync -f "$directory"
  wait_until_idle
  before=("$watch_ticks" "$daemon_ticks" "$marked")
  took=$("$1" "$directory")
  wait_until_idle
  ((marked > before[2])) || fail "spoor-watch marked nothing of $1" "$work/watch.log"
  # shellcheck disable=SC2086  # words
  add "$1" "$2" watched $took $((watch_ticks - before[0])) $((daemon_ticks - before[1])) $((marked - before[2]))
  rm -rf "$directory"
  wait_until_idle
  awk '$1 == "VmHWM:" { print $2 / 1024 }' "/proc/${pid[spoor-watch]}/status" >>"$work/figures/peak-mib"
  stop spoor-watch TERM
  ((status == 0)) || fail "spoor-watch ended with $status on SIGTERM" "$work/watch.log"
  sync -f "$work/work/drive"
}

measure_workloads() {
  local round workload
  make_drive work 3G -N "$((untar_files * 2 + 10000))"
  make_tar "$work/files.tar" "$work/work/drive/source"
  start_daemon work
  for ((round = first_round; round <= rounds; ++round)); do
    for workload in untar create; do
      run_unwatched "$workload" "$round"
      run_watched "$workload" "$round"
    done
  done
  remove_drive work
}

# ------------------------------------------------------------------------------------------------

choose_programs
measure_set_up small "$small_tree" "$first_round"
measure_set_up large "$large_tree" 1  # the peers take too long for a round that does not count
measure_workloads

# spread FIGURE: one in microseconds
spread() {
  stats "$1" | awk '{
    if ($1 >= 1e6) printf "%.2f (%.2f..%.2f) s", $1 / 1e6, $2 / 1e6, $3 / 1e6
    else printf "%.1f (%.1f..%.1f) ms", $1 / 1e3, $2 / 1e3, $3 / 1e3 }'
}

set_up() {  # program tree
  if grep -q capped "$work/figures/set-up-$1-$2"; then echo ">$seconds_max s"; else spread "set-up-$1-$2"; fi
}

# slowdown WORKLOAD COLUMN: the median of the ratios of the rounds
slowdown() {
  paste "$work/figures/$1-watched-$2" "$work/figures/$1-unwatched-$2" | awk '{ print $1 / $2 }' >"$work/figures/ratios"
  stats ratios | awk '{ printf "%.2f (%.2f..%.2f)", $1, $2, $3 }'
}

print_workload() {  # workload title wanted
  printf '%-21s %27s %27s   %s, wanted: at most %s; CPU time %s\n' "$2" "$(spread "$1-unwatched-1")" \
    "$(spread "$1-watched-1")" "$(slowdown "$1" 1)" "$3" "$(slowdown "$1" 2)"
}

print_cpu() {  # workload title
  echo "$(stats "$1-watched-3") $(median "$1-watched-1") $(median "$1-watched-4") $(median "$1-watched-5")" |
    awk -v title="$2" -v per_second="$ticks_per_second" '{
      watch = sprintf("%.2f (%.2f..%.2f) s", $1 / per_second, $2 / per_second, $3 / per_second)
      printf "%-21s %27s %25.0f %% %11.2f s %8d\n", title, watch, 100 * $1 / per_second / ($4 / 1e6), $5 / per_second, $6 }'
}

echo "Rounds: $rounds. ext4 in a loop-mounted image, trees cached, $(nproc) processors, Linux $(uname -r)."
printf '\n%-21s %27s %27s\n' set-up "$small_tree directories" "$large_tree directories"
for program in "${programs[@]}"; do
  wanted=''
  [[ $program != spoor_watch ]] || wanted='   wanted: below 10 ms'
  printf '%-21s %27s %27s%s\n' "${program/_/-}" "$(set_up "$program" small)" "$(set_up "$program" large)" "$wanted"
done
printf '\n%-21s %27s %27s   %s\n' workload unwatched watched ratio
print_workload untar "untar, $untar_files files" 1.10
print_workload create "create, $create_files files" 1.25
printf '\n%-21s %27s %27s %13s %8s\n' 'CPU time of' spoor-watch 'of the time elapsed' spoord marks
print_cpu untar "untar, $untar_files files"
print_cpu create "create, $create_files files"
printf '\nPeak memory of spoor-watch: %.1f MiB (wanted: below 64)\n' "$(stats peak-mib | cut -d ' ' -f 3)"
