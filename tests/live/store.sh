#!/usr/bin/env bash
# The state of a cluster: backup, restore, check-store; a full disk, a read-only one, a lost file.
source "$(dirname "$0")/lib.sh"
muster() { "$MUSTER" "$@"; }
refused() { # refused COMMAND...: it must fail; prints what it says
  local output
  ! output=$("$@" 2>&1) || fail "not refused: $* -> $output"
  printf '%s\n' "$output"
}

say "== backup of a running cluster, restore"
up
kubectl create configmap kept --from-literal=a=1
contains "$(muster check-store --data-dir "$DATA")" "no faults" "check of a running cluster"
contains "$(muster backup "$SCRATCH/b.db" --data-dir "$DATA")" "(running)" "online backup"
equals "$(stat -c %a "$SCRATCH/b.db")" 600 "mode of the backup"
contains "$(refused muster backup "$SCRATCH/b.db" --data-dir "$DATA")" "exists already"
kubectl create configmap later --from-literal=a=1
seen=$(kubectl get configmap later -o 'jsonpath={.metadata.resourceVersion}')
contains "$(refused muster restore "$SCRATCH/b.db" --data-dir "$DATA")" "already running"
muster down --data-dir "$DATA"
contains "$(muster check-store --data-dir "$DATA")" "no faults" "check of a stopped cluster"
contains "$(refused muster restore "$SCRATCH/b.db" --data-dir "$DATA")" "--force"
muster restore "$SCRATCH/b.db" --data-dir "$DATA" --force
up
equals "$(jsonpath configmap/kept .data.a)" 1 "what the backup holds"
contains "$(refused kubectl get configmap later)" NotFound
# A client that saw the lost future is told to list again.
watch="/api/v1/configmaps?watch=1&timeoutSeconds=1&resourceVersion=$seen"
contains "$(kubectl get --raw "$watch" 2>&1)" '"code":410' "a watch from the lost future"
kubectl create configmap after --from-literal=a=1
contains "$(kubectl get --raw "$watch" 2>&1)" '"code":410' "the same once writes went on"
muster down --data-dir "$DATA"

say "== restore on a new machine: old kubeconfigs go on"
cp "$KUBECONFIG" "$SCRATCH/old-kubeconfig"
muster restore "$SCRATCH/b.db" --data-dir "$SCRATCH/new"
muster up --detach --data-dir "$SCRATCH/new"
equals "$(kubectl --kubeconfig "$SCRATCH/old-kubeconfig" get configmap kept -o 'jsonpath={.data.a}')" 1
contains "$(refused muster get configmaps --kubeconfig "$SCRATCH/none")" "--kubeconfig $SCRATCH/none: No such file"
muster down --purge --data-dir "$SCRATCH/new"

say "== a damaged backup changes nothing"
cp "$SCRATCH/b.db" "$SCRATCH/bad.db"
printf 'garbage%.0s' {1..800} | dd of="$SCRATCH/bad.db" bs=1 seek=20480 conv=notrunc status=none
refused muster check-store "$SCRATCH/bad.db" >/dev/null
contains "$(refused muster restore "$SCRATCH/bad.db" --data-dir "$DATA" --force)" "nothing was changed"

say "== what check-store tells apart"
printf 'no database' >"$SCRATCH/text"
contains "$(refused muster check-store "$SCRATCH/text")" "is not a muster store"
contains "$(muster check-store --help)" "--data-dir"
! muster check-store --help | grep -q -- --namespace || fail "check-store asks no cluster"

say "== a lost database is not started anew"
mv "$DATA/store/muster.db" "$SCRATCH/away.db"
contains "$(refused up)" "missing or empty" "start without the database"
[ ! -e "$DATA/store/muster.db" ] || fail "an empty database was made"
mv "$DATA/store" "$SCRATCH/away"
contains "$(refused up)" "missing or empty" "start without the folder"
rm -rf "$DATA/store"
mv "$SCRATCH/away" "$DATA/store"
mv "$SCRATCH/away.db" "$DATA/store/muster.db"
up
equals "$(jsonpath configmap/kept .data.a)" 1 "the database is back"
muster down --purge --data-dir "$DATA"

say "== a full disk"
mkdir "$DATA"
mount -t tmpfs -o size=64m tmpfs "$DATA"
mkdir "$DATA/pods"
touch "$DATA/muster-data-directory"
head -c 256m /dev/zero >"$DATA/pods/ballast" 2>/dev/null || true
contains "$(refused up)" "0 MB free; fix: make room" "start on a full disk"
rm "$DATA/pods/ballast"
up
kubectl create configmap kept --from-literal=a=1
head -c 256m /dev/zero >"$DATA/pods/ballast" 2>/dev/null || true
head -c 100000 /dev/zero | tr '\0' v >"$SCRATCH/big"
full=
for i in $(seq 1 40); do
  full=$(kubectl create configmap "big-$i" --from-file=v="$SCRATCH/big" 2>&1) || break
done
contains "$full" "is full" "what the client is told"
contains "$full" "muster.db" "which file"
equals "$(jsonpath configmap/kept .data.a)" 1 "reads go on"
contains "$(kubectl get --raw '/readyz?verbose' 2>&1 || true)" "is full" "readyz"
contains "$(muster status)" "is full" "muster status"
kill -0 "$(control_plane_pid)" || fail "the control plane died"
rm "$DATA/pods/ballast"
# It goes on by itself, and a restart finds what it did.
eventually 60 kubectl create configmap by-itself --from-literal=a=1
equals "$(kubectl get --raw /readyz)" ok "readyz with room again"
muster down --data-dir "$DATA"
contains "$(muster check-store --data-dir "$DATA")" "no faults" "check after a full disk"
up
equals "$(jsonpath configmap/by-itself .data.a)" 1 "what was written since"
equals "$(jsonpath configmap/kept .data.a)" 1 "state after the disk has room again"
kubectl create configmap again --from-literal=a=1
muster down --data-dir "$DATA"

say "== a read-only disk"
mount -o remount,ro "$DATA"
contains "$(refused up)" "Read-only file system" "start on a read-only disk"
contains "$(muster check-store --data-dir "$DATA")" "no faults" "check on a read-only disk"
mount -o remount,rw "$DATA"
up
equals "$(jsonpath configmap/again .data.a)" 1 "state after that"
muster down --data-dir "$DATA"
umount "$DATA"
rmdir "$DATA"
say "result: backup, restore, check-store, full and read-only disks, lost files: all answered"
