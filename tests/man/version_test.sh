#!/bin/bash
# version_test.sh SOURCE BUILD: which commit cmake/write_version.cmake finds, and when it writes; what --version prints.
set -euo pipefail

source=$1
build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test

fail() {
  echo "$*" >&2
  exit 1
}

# write TREE COMMIT: as in a build of TREE with SPOOR_COMMIT=COMMIT.
write() {
  cmake -DOUTPUT="$scratch/version.cpp" -DSOURCE="$1" -DVERSION=1.2.3 -DCOMMIT="$2" \
    -P "$source/cmake/write_version.cmake"
}

# expect TREE COMMIT TEXT: what --version then prints after the name.
expect() {
  write "$1" "$2"
  grep -qF "\" $3\";" "$scratch/version.cpp" || fail "expected '$3': $(<"$scratch/version.cpp")"
}

# A packager's repository, and in it a tree that came as a file.
git init -q "$scratch"
git -C "$scratch" commit -q --allow-empty -m theirs
tree=$scratch/tree
mkdir -p "$tree/cmake"
cp "$source/cmake/archived_commit.txt" "$tree/cmake"
cp "$source/.gitattributes" "$tree"
expect "$tree" '' '1.2.3'
expect "$tree" '1.2.3-1~bpo12+1' '1.2.3 (1.2.3-1~bpo12+1)'
expect "$tree" 0123456789abcdef0123456789abcdef01234567 '1.2.3 (0123456789ab)'
if write "$tree" '"; abort(); //' 2>"$scratch/error"; then fail 'it accepts code for a commit'; fi
grep -q 'SPOOR_COMMIT is' "$scratch/error"

git init -q "$tree"
git -C "$tree" add -A
git -C "$tree" commit -q -m first
commit=$(git -C "$tree" rev-parse HEAD)
expect "$tree" '' "1.2.3 (${commit:0:12})"
expect "$tree" other '1.2.3 (other)'

git -C "$tree" tag -a -m tag v1.2.3  # a tag is no commit
expect "$tree" '' "1.2.3 (${commit:0:12})"
touch -d '2001-01-01' "$scratch/version.cpp"
expect "$tree" '' "1.2.3 (${commit:0:12})"
[[ $(date -r "$scratch/version.cpp" +%Y) == 2001 ]] || fail 'the same commit is written again, so all is linked again'

echo >>"$tree/.gitattributes"
expect "$tree" '' "1.2.3 (${commit:0:12}-dirty)"

mkdir "$scratch/unpacked"
git -C "$tree" archive HEAD | tar -x -C "$scratch/unpacked"
expect "$scratch/unpacked" '' "1.2.3 (${commit:0:12})"

for program in spoor spoord spoor-watch; do
  printed=$("$build/$program" --version)
  [[ $printed =~ ^$program\ [0-9]+\.[0-9]+\.[0-9]+(\ \([0-9A-Za-z.+~-]+\))?$ ]] || fail "$program prints '$printed'"
done
