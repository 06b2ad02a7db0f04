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

for part in tests/live/user/*.sh; do
  setpriv --reuid=$user --regid=$user --clear-groups env TMPDIR="$folder/tmp" "$part"
  left=$(ps -o pid=,args= -u $user || true)
  [ -z "$left" ] || { echo "FAIL: processes of the user after $part: $left"; exit 1; }
  [ -z "$(ls -A "$folder/tmp")" ] || { echo "FAIL: files of the user after $part: $(find "$folder/tmp")"; exit 1; }
done
