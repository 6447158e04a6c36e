#!/bin/bash
# The site builds; with mistakes, made in a copy, it does not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() { mkdocs build --strict -f "$1/site/mkdocs.yml" -d "$work/site" 2>&1; }

build docs >"$work/log" || { cat "$work/log" >&2; exit 1; }
for page in index get-started glossary troubleshooting monitoring/index; do [[ -s $work/site/$page.html ]]; done

cp -r docs "$work/docs"
cat >>"$work/docs/backup.md" <<'END'

[x](no-such-page.md) [x](operations.md#no-such-heading) [x](#nor-this) ![x](https://example.com/x.png)
END
if build "$work/docs" >"$work/log"; then
  echo "it builds with mistakes" >&2
  exit 1
fi
for mistake in "'no-such-page.md'" "'operations.html#no-such-heading'" "'#nor-this'" 'loads from the network'; do
  grep -qF "$mistake" "$work/log" || { echo "no $mistake in:" >&2; cat "$work/log" >&2; exit 1; }
done
