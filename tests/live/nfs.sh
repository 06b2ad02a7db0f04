#!/usr/bin/env bash
# Issue 6: NFS volumes, as far as they can be shown without a server: the program mount(8) is a script here that binds a
# folder where the export would be, hangs for a server that is dead, and refuses as a server does. Everything else is the
# real thing: the mount is on the node, once for each pod; it is there after kill -9 of the agent; and nothing is removed
# before it is unmounted. Never run against a real NFS server.
source "$(dirname "$0")/lib.sh"
source tests/live/volumes/pods.sh
bin=$SCRATCH/bin exports=$SCRATCH/exports
mkdir -p "$bin" "$exports/shared/sub" "$exports/other"
echo precious >"$exports/shared/file"
: >"$SCRATCH/calls"
cat >"$bin/mount" <<SH
#!/bin/bash
[ "\$1 \$2" = "-t nfs" ] || exec /usr/bin/mount "\$@"
echo "\$*" >>"$SCRATCH/calls"
options=; [ "\$3" != -o ] || options=\$4
target=\${!#} source=\${@: -2:1}
case \$source in
  dead:*) while true; do sleep 1000; done ;;
  closed:*) echo "mount.nfs: access denied by server while mounting \$source" >&2; exit 32 ;;
esac
/usr/bin/mount --bind "$exports/\${source#*:/}" "\$target" || exit 32
[[ ",\$options," != *,ro,* ]] || /usr/bin/mount -o remount,bind,ro "\$target"
SH
chmod +x "$bin/mount"
export PATH=$bin:$PATH
up
node=$(kubectl get nodes -o 'jsonpath={.items[0].metadata.name}')

mounted() { awk -v d="$DATA/pods/" 'index($5, d) == 1' /proc/self/mountinfo | wc -l; }
mounts_are() { equals "$(mounted)" "$1" "mounts in the folders of pods"; }
volume() { # volume NAME SERVER PATH [MORE_OF_SPEC]: with a claim for it that the binder binds
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv-$1}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany, ReadOnlyMany]
  storageClassName: ""
  persistentVolumeReclaimPolicy: Retain
  nfs: {server: $2, path: $3}
  ${4:-}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1}
spec:
  accessModes: [${5:-ReadWriteMany}]
  storageClassName: ""
  volumeName: pv-$1
  resources: {requests: {storage: 1Mi}}
YAML
}
inline() { echo "nfs: {server: $1, path: $2${3:-}}"; }

say "== two pods share an export by one claim"
volume shared files.example /shared 'mountOptions: [nfsvers=4.1, hard]'
pod first shared 'echo of-first >/data/first; exec sleep 1000'
pod second shared 'while [ ! -e /data/first ]; do sleep 0.1; done; cat /data/first >/data/second; exec sleep 1000'
eventually 30 has_file "$exports/shared/second"
eventually 30 pod_phase_is first Running
equals "$(kubectl exec first -- cat /data/second /data/file | tr '\n' ' ')" "of-first precious " "what they share"
equals "$(jsonpath pvc/shared .status.phase) $(jsonpath pv/pv-shared .status.phase)" "Bound Bound" "phases"
uid=$(jsonpath pod/first .metadata.uid)
contains "$(cat "$SCRATCH/calls")" "-t nfs -o hard,nfsvers=4.1 files.example:/shared $DATA/pods/$uid/volumes/kubernetes.io~nfs/v" "the mount"
mounts_are 2

say "== kill -9 of the agent: the pods go on, and nothing is mounted a second time"
kill -9 "$(control_plane_pid)"
mounts_are 2
up >/dev/null
equals "$(kubectl exec second -- cat /data/file)" precious "after the restart"
equals "$(jsonpath pod/first '.status.containerStatuses[0].restartCount')" 0 "restarts"
mounts_are 2
equals "$(wc -l <"$SCRATCH/calls")" 2 "mounts that were made"

say "== a pod ends: unmounted first, and the export has all that it had"
kubectl delete pod first >/dev/null
mounts_are 1
equals "$(cat "$exports/shared/file" "$exports/shared/first" | tr '\n' ' ')" "precious of-first " "the export"
equals "$(kubectl exec second -- cat /data/first)" of-first "the other pod"
[ ! -e "$DATA/pods/$uid" ] || fail "the folder of the pod is still there"
if grep -ls "pods/$uid/" /proc/[0-9]*/mountinfo; then fail "another process still has its mount"; fi

say "== a pod that is deleted while no agent is there"
pod orphan "$(inline files.example /shared)" 'exec sleep 1000'
eventually 30 pod_phase_is orphan Running
uid=$(jsonpath pod/orphan .metadata.uid)
kubectl delete pod orphan --wait=false --grace-period=0 --force >/dev/null 2>&1
kill -9 "$(control_plane_pid)"
# What an agent leaves that is killed in the middle of a removal.
mkdir -p "$DATA/pods/.removed-x/volumes/kubernetes.io~nfs/v"
/usr/bin/mount --bind "$exports/shared" "$DATA/pods/.removed-x/volumes/kubernetes.io~nfs/v"
up >/dev/null
no_folder() { [ ! -e "$DATA/pods/$1" ]; }
eventually 60 no_folder "$uid"
eventually 60 no_folder .removed-x
mounts_are 1
equals "$(cat "$exports/shared/file" "$exports/shared/first" | tr '\n' ' ')" "precious of-first " "the export"

say "== readOnly of the volume and of the mount, a subPath, fsGroup"
equals "$(runs ro "$(inline files.example /shared ', readOnly: true')" 'cat /data/file; touch /data/x 2>/dev/null || echo refused' | tr '\n' ' ')" \
  "precious refused " "a readOnly volume"
contains "$(cat "$SCRATCH/calls")" "-t nfs -o ro files.example:/shared" "its mount"
equals "$(runs ro-mount shared 'touch /data/x 2>/dev/null || echo refused' ', readOnly: true')" refused "a readOnly mount"
volume reading files.example /shared "" ReadOnlyMany
equals "$(runs rox "persistentVolumeClaim: {claimName: reading, readOnly: true}" 'cat /data/file; touch /data/x 2>/dev/null || echo refused' | tr '\n' ' ')" \
  "precious refused " "a claim for reading"
runs sub shared 'echo below >/data/note' ', subPath: sub'
equals "$(cat "$exports/shared/sub/note")" below "a subPath"
owner=$(stat -c %g "$exports/shared/file")
runs group shared true '' 'securityContext: {fsGroup: 5000}'
equals "$(stat -c %g "$exports/shared/file")" "$owner" "group of the server's files"
kubectl delete pod ro ro-mount rox sub group >/dev/null
mounts_are 1

say "== what the server says is said; it is tried again"
pod refused "$(inline closed /shared)" 'true'
waits refused 'MountVolume.SetUp failed for volume "v" : mount failed: exit status 32'
shows "Output: mount.nfs: access denied by server while mounting closed:/shared" events_of refused FailedMount
if [ ! -x /sbin/mount.nfs ]; then shows "mount.nfs is missing: install nfs-common" events_of refused FailedMount; fi
kubectl delete pod refused >/dev/null

say "== a server that does not answer holds up nobody else, nor the end of its pods"
for i in 1 2 3 4; do pod "hangs-$i" "$(inline dead /shared)" true; done
equals "$(runs beside "$(inline files.example /other)" 'echo up')" up "a pod beside them"
equals "$(kubectl exec second -- cat /data/file)" precious "a pod that runs"
shows 'MountVolume.SetUp for volume "v" : still waiting for dead:/shared' events_of hangs-1 FailedMount
waits hangs-1 "it is given up after 2m"
start=$SECONDS
kubectl delete pod hangs-1 hangs-2 hangs-3 hangs-4 beside >/dev/null
[ $((SECONDS - start)) -lt 15 ] || fail "their end took $((SECONDS - start)) s"
pgrep -f "dead:/shared" >/dev/null && fail "a mount of a pod that is gone goes on"
mounts_are 1

say "== data outlives the pods and the PersistentVolume"
kubectl delete pod second >/dev/null
mounts_are 0
kubectl delete pvc shared >/dev/null
kubectl delete pv pv-shared >/dev/null
eventually 30 is_gone pv/pv-shared
equals "$(cat "$exports/shared/file" "$exports/shared/second" | tr '\n' ' ')" "precious of-first " "the export"
volume again files.example /shared
equals "$(runs reader again 'cat /data/second')" of-first "by another volume"

say "== muster down unmounts, muster up mounts again, --purge leaves the export alone"
pod keeper again 'exec sleep 1000'
eventually 30 pod_phase_is keeper Running
"$MUSTER" down --data-dir "$DATA" >/dev/null
mounts_are 0
up >/dev/null
pod stayer again 'exec sleep 1000'
eventually 30 pod_phase_is stayer Running
[ "$(mounted)" -ge 1 ] || fail "nothing is mounted"
# Somebody else's mount, which no pod knows of.
mkdir -p "$DATA/logs/foreign"
/usr/bin/mount --bind "$exports/other" "$DATA/logs/foreign"
touch "$exports/other/kept"
if "$MUSTER" down --purge --data-dir "$DATA" >/dev/null 2>"$SCRATCH/purge"; then fail "purged over a mount"; fi
contains "$(cat "$SCRATCH/purge")" "is a mount point" "muster down --purge"
mounts_are 0
has_file "$exports/other/kept" || fail "removed what is mounted"
umount "$DATA/logs/foreign"
"$MUSTER" down --purge --data-dir "$DATA" >/dev/null
[ ! -e "$DATA" ] || fail "left $(ls -A "$DATA")"
equals "$(cat "$exports/shared/file" "$exports/shared/second" | tr '\n' ' ')" "precious of-first " "the export"

contains "$("$MUSTER" doctor --data-dir "$DATA" || true)" "of all kinds but NFS" "muster doctor"
say "result: NFS volumes are mounted for their pods, survive the agent, and come off before anything is removed"
