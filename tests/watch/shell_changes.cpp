#include "tests/support/process.h"
#include "tests/watch/changed_tree.h"

namespace spoor::watch {
namespace {

// Scripts of bash that end at the first failure. In their environment: "$drive", "$scratch" (elsewhere),
// "$tree" and "$other" (small trees), "$file" and "$second" (files), "$new" (a free path outside of $tree),
// "$beside" (one beside $file), "$plain" (a free path of a plain name), and numbers below 10,000: $n and $m.
struct Script {
  const char* name;
  const char* program;  // beside those of every system
  const char* text;
};

constexpr Script scripts[] = {
    {"cp -a", "", R"sh(cp -aT --reflink=auto "$tree" "$new")sh"},
    // It fails where a directory and a file have one name.
    {"cp -a over a tree", "", R"sh([[ "$other/" == "$tree"/* ]] || cp -aT "$tree" "$other" || :)sh"},
    {"tar -x", "tar", R"sh(
      tar -cf "$scratch/archive" -C "$tree" .
      (( n % 2 )) && to=$tree || to=$new
      mkdir -p "$to"
      (( m % 3 )) || flags="--unlink-first --recursive-unlink"
      tar -xf "$scratch/archive" -C "$to" ${flags-})sh"},
    // From a tree outside of the drive that changes, so that a later run has to update and to delete.
    {"rsync", "rsync", R"sh(
      source=$scratch/rsync-source
      (( n % 4 )) || rm -rf "$source"
      mkdir -p "$source/d$(( n % 7 ))/e$(( m % 3 ))"
      for file in changed f$(( m % 9 )) d$(( n % 7 ))/f$(( m % 5 ));
do
        head -c "$n" /dev/urandom > "$source/$file"
      done
      modes=(--whole-file --inplace --delay-updates --checksum)
      (( m % 2 )) && to=$tree || to=$new
      rsync -a --delete "${modes[$(( n % 4 ))]}" "$source/" "$to/")sh"},
    {"mv of a tree over an empty directory", "", R"sh(mkdir -p "$new"; mv -T "$tree" "$new")sh"},
    {"mv of a file over a file", "", R"sh([[ $file == "$second" ]] || mv -fT "$file" "$second")sh"},
    // It fails at a directory that is not empty, and goes on.
    {"find -delete", "", R"sh(find "$tree" -mindepth 1 -name "*[a-m]" -delete || :)sh"},
    {"chmod and chown -R", "", R"sh(
      (( n % 2 )) && chmod -R g+w "$tree" || chmod -R o-r "$tree"
      chown -Rh "$(( m % 2 )):$(( m % 2 ))" "$tree")sh"},
    {"sed -i", "", R"sh(sed -i -e "1i\\line" "$file")sh"},
    {"gzip and install", "", R"sh(
      head -c "$n" /dev/urandom > "$plain"
      gzip -f "$plain"
      install -m 600 "$plain.gz" "$plain.installed")sh"},
    {"dd", "", R"sh(
      dd if=/dev/zero of="$file" bs=1k status=none conv=notrunc count=$(( n % 20 )) seek=$(( m % 20 )))sh"},
    {"dpkg-deb -x", "dpkg-deb", R"sh(
      if [[ ! -e $scratch/package.deb ]]; then
        for name in usr/bin/program usr/lib/p/library etc/p.conf; do
          install -D <(head -c "$n" /dev/urandom) "$scratch/package/$name"
        done
        mkdir -p "$scratch/package/DEBIAN"
        printf "Package: p\nVersion: 1\nArchitecture: all\nMaintainer: m\nDescription: d\n" \
          > "$scratch/package/DEBIAN/control"
        dpkg-deb --build -Znone "$scratch/package" "$scratch/package.deb"
      fi
      (( n % 2 )) && to=$plain || to=$tree
      dpkg-deb -x "$scratch/package.deb" "$to" || :)sh"},
    // A library is replaced by a rename.
    {"ar rc", "ar", R"sh(
      head -c "$n" /dev/urandom > "$scratch/member$(( m % 3 ))"
      ar rc "$tree/lib.a" "$scratch/member$(( m % 3 ))" || :)sh"},
    // With a different tree in each branch. No links: git would make them across directories.
    {"git clone and checkout", "git", R"sh(
      if [[ ! -e $scratch/repository ]]; then
        git init -q "$scratch/repository"
        cd "$scratch/repository"
        for branch in 0 1 2 3; do
          git checkout -q --orphan branch$branch
          for file in a/b b/$branch c/$branch/a; do
            install -D <(head -c $(( n / (branch + 1) )) /dev/urandom) "$file"
          done
          git add -A
          git commit -q -m state
        done
      fi
      git clone -q --no-hardlinks "$scratch/repository" "$plain"
      git -C "$plain" checkout -q -f branch$(( n % 4 ))
      git -C "$plain" checkout -q -f branch$(( m % 4 )))sh"},
    // A clone may have lost files to other changes by now. Git waits for the writer of a FIFO among its
    // files.
    {"git checkout", "git", R"sh(
      while read -r -d "" repository; do
        [[ -z $(find "$repository/.." -type p) ]] || continue
        git -C "$repository/.." checkout -q -f branch$(( n % 4 )) || :
      done < <(find "$drive" -name .git -type d -prune -print0 | shuf -z -n 2))sh"},
    {"git init and commit", "git", R"sh(
      git init -q "$plain"
      cd "$plain"
      for (( count = 0; count <= n % 3; ++count )); do
        head -c "$m" /dev/urandom > f$count
        git add -A
        git commit -q -m state
      done
      (( n % 2 )) || git gc -q --prune=now)sh"},
    // At times the database is one of before, which other changes may have damaged. The log of some stays
    // when the program ends, as after a crash.
    {"sqlite3", "sqlite3", R"sh(
      database=$plain.sqlite
      (( n % 2 )) || read -r -d "" database < <(find "$drive" -name "*.sqlite" -print0 | shuf -z -n 1) || :
      modes=(WAL WAL DELETE TRUNCATE PERSIST)
      (( m % 2 )) && at_end=on || at_end=off
      sqlite3 -batch "${database:-$plain.sqlite}" ".dbconfig no_ckpt_on_close $at_end" \
        "PRAGMA journal_mode=${modes[$(( n % 5 ))]}" "CREATE TABLE IF NOT EXISTS t(x); BEGIN;
          INSERT INTO t VALUES(randomblob(3000)),(randomblob(50)); COMMIT;
          DELETE FROM t WHERE rowid % 5 = 0; INSERT INTO t SELECT x FROM t LIMIT 3;" || :
      (( n % 3 )) || sqlite3 -batch "${database:-$plain.sqlite}" VACUUM || :)sh"},
    {"write", "", R"sh((( n % 2 )) && to=$file || to=$new; head -c "$m" /dev/urandom >> "$to")sh"},
    // The same size, other bytes.
    {"overwrite", "", R"sh(
      size=$(stat -c %s "$file")
      head -c "$size" /dev/urandom | dd of="$file" conv=notrunc status=none)sh"},
    {"truncate", "", R"sh(truncate -s "$(( 2 * n ))" "$file")sh"},
    // In its own directory: the kernel names no other one of a file that gets a second name.
    {"link within a directory", "", R"sh(ln "$file" "$beside"; (( n % 2 )) || echo more >> "$beside")sh"},
    {"unlink of a further name", "", R"sh(
      ln "$file" "$beside"
      (( n % 2 )) || echo more >> "$file"
      rm "$file")sh"},
    {"unlink", "", R"sh(rm "$file")sh"},
    {"rename of a file", "", R"sh((( n % 2 )) && to=$beside || to=$new; mv -T "$file" "$to")sh"},
    {"utimensat", "", R"sh(touch -h -d "@$n" "$file")sh"},
    {"symlink", "", R"sh(ln -s "target$n" "$new")sh"},
    // With a name that no file gets: a program that opens it to write would wait for a reader.
    {"mkfifo", "", R"sh(mkfifo "$plain.fifo")sh"},
    // Another type under the same name.
    {"another type", "", R"sh(
      (( n % 2 )) && path=$file || path=$tree
      rm -rf "$path"
      case $(( m % 3 )) in
        0) ln -s target "$path" ;;
        1) echo content > "$path" ;;
        2) mkdir -p "$path/below"; echo content > "$path/below/file" ;;
      esac)sh"},
};

std::string run_script(ChangedTree& tree, const char* text) {
  const std::string from = tree.some_tree();
  const std::string file = tree.some_file();
  const std::vector<std::pair<const char*, std::string>> variables = {
      {"drive", tree.places().drive},
      {"scratch", tree.places().scratch},
      {"tree", from},
      {"other", tree.some_tree()},
      {"file", file},
      {"second", tree.some_file()},
      {"new", tree.new_path_outside(from)},
      {"beside", tree.new_path_in(std::filesystem::path(file).parent_path())},
      {"plain", tree.new_plain_path()},
      {"n", std::to_string(tree.random().below(10'000))},
      {"m", std::to_string(tree.random().below(10'000))},
      // Without the settings of this machine, and without work in the background.
      {"GIT_CONFIG_GLOBAL", "/dev/null"},
      {"GIT_CONFIG_NOSYSTEM", "1"},
      {"GIT_CONFIG_COUNT", "2"},
      {"GIT_CONFIG_KEY_0", "gc.auto"},
      {"GIT_CONFIG_VALUE_0", "0"},
      {"GIT_CONFIG_KEY_1", "maintenance.auto"},
      {"GIT_CONFIG_VALUE_1", "false"},
      {"GIT_AUTHOR_NAME", "test"},
      {"GIT_AUTHOR_EMAIL", "test@example.com"},
      {"GIT_COMMITTER_NAME", "test"},
      {"GIT_COMMITTER_EMAIL", "test@example.com"}};
  std::vector<std::string> command{"env"};
  std::string described;
  for (const auto& [name, value] : variables) {
    command.push_back(std::string(name) + '=' + value);
    if (!std::string(name).starts_with("GIT")) described += command.back() + ' ';
  }
  command.insert(command.end(), {"bash", "-euo", "pipefail", "-c", text});
  tree.run(command);
  return described;
}

}  // namespace

std::vector<Change> shell_changes() {
  std::vector<Change> changes;
  for (const Script& script : scripts)
    changes.push_back({script.name, script.program,
                       [text = script.text](ChangedTree& tree) { return run_script(tree, text); }});
  return changes;
}

}  // namespace spoor::watch
