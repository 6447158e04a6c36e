#!/bin/bash
# Fetches the libraries of the page from npm, at the versions below. Run it after changing one, then the tests of
# tests/page, and commit the result.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fetch NAME VERSION INTEGRITY LICENCE_FILE FILE...: the files come from dist/ of the package.
fetch() {
  local name=$1 version=$2 integrity=$3 licence=$4 archive
  archive=$(npm pack --silent --pack-destination "$work" "$name@$version")
  if [[ "sha512-$(openssl dgst -sha512 -binary "$work/$archive" | base64 -w0)" != "$integrity" ]]; then
    echo "$name $version is not the package of $integrity" >&2
    return 1
  fi
  mkdir "$work/$name"
  tar -xzf "$work/$archive" -C "$work/$name" --strip-components=1
  cp "$work/$name/LICENSE" "$licence"
  local file
  for file in "${@:5}"; do cp "$work/$name/dist/$file" "$file"; done
  printf '%s %s: %s\n' "$name" "$version" "${*:5}" >>"$work/VERSIONS"
}

fetch uplot 1.6.32 sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw== LICENSE.uPlot \
  uPlot.iife.min.js uPlot.min.css
fetch d3-hierarchy 3.1.3 sha512-GRajN5ZcnEwYFWqqdzhG1qJ3+fDg6WWzk47TJg7ePY7yvYAgRfD2r1mUx+wviBOWuCwamCUzjwMSdato43jbGA== LICENSE.d3-hierarchy \
  d3-hierarchy.min.js
cp "$work/VERSIONS" VERSIONS
