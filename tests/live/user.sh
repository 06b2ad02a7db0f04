#!/usr/bin/env bash
# Issue 4, shown by 1: an ordinary user, without root: quickstart, two jobs on one port, exec, logs, crashes; `down`
# leaves nothing. The parts are in tests/live/user/.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools/probe root namespaces user_namespaces overlay python_torch
root=$PWD user=12345
setpriv --reuid=$user --regid=$user --clear-groups test -r "$root/examples/pytorchjob-ddp.yaml" || {
  echo "skipped: an ordinary user cannot read $root"
  exit 77
}
# His folder is on the disk. In this namespace the build folder is his: quickstart calls ninja, which writes its log.
folder=$(mktemp -d /var/tmp/muster-user-XXXXXX)
leave() { cd / && umount -l "$root" 2>/dev/null || true; rm -rf "$folder"; }
trap leave EXIT
mkdir "$folder/upper" "$folder/work" "$folder/tmp"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$folder/upper,workdir=$folder/work" "$root"
cd "$root"
chown $user:$user "$folder" "$folder/tmp" build/release build/release/.ninja_*

through=
part() { # part NAME [ARGUMENT...]: as the user, who leaves nothing
  setpriv --reuid=$user --regid=$user --clear-groups env TMPDIR="$folder/tmp" $through "tests/live/user/$1.sh" "${@:2}"
  left=$(ps -o pid=,args= -u $user || true)
  [ -z "$left" ] || { echo "FAIL: processes of the user after $*: $left"; exit 1; }
  left=$(find "$folder/tmp" -mindepth 1)
  [ -z "$left" ] || { echo "FAIL: files of the user after $*: $left"; exit 1; }
}

# An outside: another network namespace behind the default route, with a web server and a name server.
outside() {
  unshare --net sleep 3600 &
  local there=$!
  until [ "$(readlink /proc/$there/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do read -rt 0.05 <> <(:) || true; done
  ip link add up0 type veth peer name up1 netns $there
  ip address add 198.51.100.1/24 dev up0
  ip link set up0 up
  nsenter -t $there -n sh -c 'ip link set lo up; ip address add 198.51.100.2/24 dev up1; ip link set up1 up'
  ip route add default via 198.51.100.2
  nsenter -t $there -n tests/live/user/outside.py &
  echo "nameserver 198.51.100.2" >"$folder/resolv.conf"
  mount --bind "$folder/resolv.conf" /etc/resolv.conf
  if [ -e /dev/net/tun ]; then
    mknod -m 666 "$folder/tun" c 10 200 && mount --bind "$folder/tun" /dev/net/tun # as udev makes it
  fi
}
hide() { if [ -e "/usr/bin/$1" ]; then mount --bind /dev/null "/usr/bin/$1"; fi; }

images() { # images OWNER
  if command -v skopeo >/dev/null && command -v umoci >/dev/null; then part images "$folder/layout" "$1"; else echo "note: no skopeo or umoci here"; fi
}
mkdir -p "$folder/image/bin"
cp /bin/busybox "$folder/image/bin/"
echo mine >"$folder/image/owned" && chown 42:42 "$folder/image/owned" && chmod 644 "$folder/image/owned"
tests/live/images/make_image.py "$folder/layout" owners:1 \
  '{"Cmd": ["/bin/busybox", "sh", "-c", "echo $(/bin/busybox stat -c %u /owned) $(/bin/busybox cat /owned)"]}' "$folder/image" >/dev/null
chmod -R a+rX "$folder/layout"

# As skopeo leaves it that root has run: in the node's namespace the user is root, too, and would look there.
mkdir -p /var/lib/containers && mount -t tmpfs -o mode=700 containers /var/lib/containers

part jobs
part node
part webhooks
part ../netpol
if /usr/bin/python3 -c 'import sklearn' 2>/dev/null; then part serving; else echo "note: no python3-sklearn here"; fi
images 0
through=tests/live/user/without-namespaces
part plain
if [ "$(uname -m)" = x86_64 ]; then
  mkdir "$folder/kernel"
  cp -r /proc/sys/kernel/. "$folder/kernel" 2>/dev/null || true # what may not be read stays away
  echo 1 >"$folder/kernel/apparmor_restrict_unprivileged_userns"
  mount --bind "$folder/kernel" /proc/sys/kernel
  through=tests/live/user/without-rights
  part restricted
  umount /proc/sys/kernel
else
  echo "note: no x86-64, so no machine that restricts user namespaces"
fi
through=
outside
for way in pasta slirp4netns; do
  if command -v $way >/dev/null && [ -e /dev/net/tun ]; then
    part outside $way
  else
    echo "note: no $way or no /dev/net/tun here"
  fi
  hide $way
done
if command -v newuidmap >/dev/null; then # more ids than his own
  echo "$user:300000:65536" >"$folder/ids"
  for list in subuid subgid; do [ -e /etc/$list ] || touch /etc/$list; mount --bind "$folder/ids" /etc/$list; done
  { cat /etc/passwd; echo "tester:x:$user:$user::/nonexistent:/bin/sh"; } >"$folder/passwd"
  mount --bind "$folder/passwd" /etc/passwd
  images 42
fi
part outside none
