#!/bin/bash
# package_test.sh FOLDER: tries the packages that ./run package left in FOLDER: Lintian, Piuparts, and a clean Debian
# that boots with them. Keeps the clean Debian in FOLDER/root.tar.gz for the next time.
set -euo pipefail

packages=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
version=$(dpkg-deb --field "$(echo "$packages"/spoor_*.deb)" Version)
# The archives of this machine, without those of others.
sources=/etc/apt/sources.list.d/debian.sources
[[ -e $sources ]] || sources=/etc/apt/sources.list

step() { echo "=== $*"; }

if [[ ${2:-} != unshared ]]; then
  exec unshare --mount --propagation private "$0" "$packages" unshared
fi
scratch=$(mktemp -d)
trap 'umount -l "$scratch/root" 2>/dev/null || true; rm -rf --one-file-system "$scratch"' EXIT

step 'lintian'
lintian --fail-on error,warning --info "$packages"/spoor_*.changes

step 'a clean Debian'
if [[ ! -e $packages/root.tar.gz ]]; then
  mmdebstrap --quiet --variant=minbase --include=systemd-sysv,dbus,procps,curl,ca-certificates \
    --aptopt='Acquire::Check-Valid-Until "false"' bookworm "$packages/new.tar.gz" "$sources"
  mv "$packages/new.tar.gz" "$packages/root.tar.gz"
fi

step 'the package before this one'
mkdir -p "$scratch/packages/before" "$scratch/packages/now"
for package in "$packages"/*.deb; do
  [[ $package == *dbgsym* ]] || cp "$package" "$scratch/packages/now"
done
echo "$version" >"$scratch/packages/now/version"
for package in "$scratch"/packages/now/*.deb; do
  dpkg-deb --raw-extract "$package" "$scratch/unpacked"
  sed -i "s/^Version: .*/Version: $version~before/; s/(\(>\?=\) $version)/(\1 $version~before)/g" "$scratch/unpacked/DEBIAN/control"
  dpkg-deb --root-owner-group --build "$scratch/unpacked" "$scratch/packages/before" >/dev/null
  rm -r "$scratch/unpacked"
done

step 'piuparts: installed, upgraded, removed and purged'
piuparts --basetgz="$packages/root.tar.gz" --distribution=bookworm --no-eatmydata --skip-logrotatefiles-test \
  --warn-on-leftovers-after-purge "$scratch"/packages/now/*.deb >"$scratch/piuparts.log" 2>&1 ||
  { cat "$scratch/piuparts.log"; exit 1; }

step 'a machine with the packages'
mkdir "$scratch/root"
mount -t tmpfs -o size=2g spoor-test "$scratch/root"
tar --extract --directory="$scratch/root" --file="$packages/root.tar.gz"
cp -r "$scratch/packages" "$scratch/root/packages"
cp /etc/resolv.conf "$scratch/root/etc/resolv.conf"
mount -t proc proc "$scratch/root/proc"
mount --rbind /dev "$scratch/root/dev"
printf '#!/bin/sh\nexit 101\n' >"$scratch/root/usr/sbin/policy-rc.d"  # no service starts outside the machine
chmod 0755 "$scratch/root/usr/sbin/policy-rc.d"
DEBIAN_FRONTEND=noninteractive chroot "$scratch/root" sh -c 'apt-get update -q && apt-get install -y -q restic /packages/before/*.deb' \
  >"$scratch/install.log" 2>&1 || { cat "$scratch/install.log"; exit 1; }
rm "$scratch/root/usr/sbin/policy-rc.d"
umount -l "$scratch/root/dev" "$scratch/root/proc"
"$here/../systemd/boot.sh" "$scratch/root" "$here/under_systemd.sh"
