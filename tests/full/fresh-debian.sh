#!/usr/bin/env bash
# Issue 2, shown by 1: ./quickstart on a fresh Debian 12 (debootstrap), as root. The clone is built from nothing; only
# the package cache and ccache come from outside. Packages are installed before the network is taken away, so that
# the cluster itself runs in a netbox.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools/probe root namespaces overlay
command -v debootstrap >/dev/null || { echo "skipped: no debootstrap"; exit 77; }
mkdir -p build
root=$(mktemp -d "$PWD/build/debian-XXXXXX") # not in /tmp: a netbox has its own
finish() {
  umount "$root/proc" 2>/dev/null || true
  umount -R "$root/sys" 2>/dev/null || true
  umount "$root/dev" 2>/dev/null || true
  umount "$root" 2>/dev/null || true
  # Never delete through a mount that could not be taken away.
  if ! grep -q " $root[/ ]" /proc/self/mountinfo; then rm -rf --one-file-system "$root"; fi
}
trap finish EXIT
mirror=$(awk '$1 == "deb" && !/\[/ { print $2; exit }' /etc/apt/sources.list 2>/dev/null || true)
if [ -z "$mirror" ]; then
  mirror=$(awk '$1 == "URIs:" { print $2; exit }' /etc/apt/sources.list.d/*.sources 2>/dev/null || true)
fi
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" "${mirror:-http://deb.debian.org/debian}" >/dev/null
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/scratch" # it is thrown away: no fsync per file
# The same package sources and client settings as the machine that runs the test.
cp -r /etc/apt/. "$root/etc/apt/"
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/hosts "$root/etc/hosts"
cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
cp -r /etc/ssl/certs/. "$root/etc/ssl/certs/" 2>/dev/null || true
git clone -q . "$root/root/muster"
mkdir -p "$root/root/.cache"
[ ! -d "${CCACHE_DIR:-$HOME/.cache/ccache}" ] || cp -r "${CCACHE_DIR:-$HOME/.cache/ccache}" "$root/root/.cache/ccache"
mount --bind "$root" "$root" # a pod needs a / that is a mount, as on every machine
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --make-rslave "$root/sys"

# The locale is part of what ccache looks at.
in_root() { chroot "$root" /usr/bin/env -i HOME=/root LANG="${LANG:-C.UTF-8}" PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
start=$SECONDS
in_root bash -c 'cd /root/muster && tools/install-packages build run example && ./quickstart --build'
built=$((SECONDS - start))
# Only the cluster's own part runs in the box: loopback, nothing else.
tests/netbox/netbox chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  bash -c 'mount -t proc proc /proc; cd /root/muster && ./quickstart && build/release/muster down --purge && test ! -e /var/lib/muster' |
  tee "$root/quickstart.out"
grep -q 'Succeeded' "$root/quickstart.out"
grep -q 'What you could try next' "$root/quickstart.out"
echo "result: fresh Debian 12: packages and build $built s, whole quickstart $((SECONDS - start)) s"
