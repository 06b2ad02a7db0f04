#!/usr/bin/env bash
# Issue 2, shown by 1: ./quickstart on a fresh Debian 12 (debootstrap), as root. The clone is built from nothing; only
# the package cache and ccache come from outside. Packages are installed before the network is taken away, so that
# the cluster itself runs in a netbox.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/full/debian-root
make_debian_root
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

# The locale is part of what ccache looks at.
in_root() { chroot "$root" /usr/bin/env -i HOME=/root LANG="${LANG:-C.UTF-8}" PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
start=$SECONDS
in_root bash -c 'cd /root/muster && tools/install-packages build run example && ./quickstart --build'
built=$((SECONDS - start))
# Only the cluster's own part runs in the box: loopback, nothing else.
box bash -c 'cd /root/muster && ./quickstart && build/release/muster down --purge && test ! -e /var/lib/muster' |
  tee "$root/quickstart.out"
grep -q 'Succeeded' "$root/quickstart.out"
grep -q 'What you could try next' "$root/quickstart.out"
echo "result: fresh Debian 12: packages and build $built s, whole quickstart $((SECONDS - start)) s"
