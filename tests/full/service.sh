#!/usr/bin/env bash
# Issue 4: muster as a service of a real systemd, which is PID 1 of a Debian 12 in namespaces of its own: root's service
# and a user's are installed from the bundle, pods outlive restarts and crashes of it, uninstall takes it away.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/full/debian-root
make_debian_root systemd systemd systemd-sysv dbus dbus-user-session libpam-systemd procps
grep -q ' - cgroup2 ' /proc/self/mountinfo || { echo "skipped: systemd needs cgroup v2 beside v1 at least"; exit 77; }
bundle=$PWD/build/bundle-service.tar.gz
./quickstart --bundle "$bundle"
tar xf "$bundle" -C "$root/opt"
ln -s /opt/muster/bin/muster "$root/usr/local/bin/muster"
chroot "$root" useradd --create-home --shell /bin/bash ada
tests/netbox/netbox tests/full/service/in-box "$root"
