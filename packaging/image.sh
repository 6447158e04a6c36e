#!/bin/bash
# image.sh PACKAGES: makes the image localhost/spoor from the packages that ./run package left in the folder PACKAGES.
# Needs podman and mmdebstrap, and an archive of Debian packages, but no registry.
set -euo pipefail

packages=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
sources=/etc/apt/sources.list.d/debian.sources  # those of this machine, without the ones of others
[[ -e $sources ]] || sources=/etc/apt/sources.list

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
cp "$here/Containerfile" "$context"
# Not systemd: systemd-standalone-sysusers makes the user.
# shellcheck disable=SC2016  # mmdebstrap runs the hook with the folder as its argument
mmdebstrap --quiet --variant=minbase --include=systemd-standalone-sysusers,"$(echo "$packages"/spoor_*.deb)" \
  --aptopt='Acquire::Check-Valid-Until "false"' --dpkgopt='path-exclude=/usr/share/man/*' \
  --hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount \
  --customize-hook='chroot "$1" install -d -o spoor -g spoor -m 0750 /var/lib/spoor /run/spoor' \
  bookworm "$context/root.tar" "$sources"
podman build --format docker --tag localhost/spoor "$context"
