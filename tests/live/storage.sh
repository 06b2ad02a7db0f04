#!/usr/bin/env bash
# Issue 6: volumes of claims on a real node: hostPath and local PersistentVolumes, those that the node keeps itself; data
# outlives pods and the agent; a volume that goes takes its folder along, and nothing else.
# The claims are bound by hand, so this needs no controller.
source "$(dirname "$0")/lib.sh"
source tests/live/volumes/pods.sh
up
node=$(kubectl get nodes -o 'jsonpath={.items[0].metadata.name}')
mkdir -p "$SCRATCH/host" "$SCRATCH/outside"
echo precious >"$SCRATCH/outside/file"

root=$(kubectl get node "$node" -o 'jsonpath={.metadata.annotations.muster\.dev/local-volumes}')
equals "$root" "$DATA/local-volumes" "the node's annotation"
equals "$(stat -c %a "$root")" 700 "mode of the folder"

claim() { # claim NAME [MODE]: for the PersistentVolume pv-NAME
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1}
spec:
  accessModes: [${2:-ReadWriteOnce}]
  storageClassName: ""
  volumeName: pv-$1
  resources: {requests: {storage: 1Mi}}
YAML
}
volume() { # volume CLAIM SOURCE [MORE_OF_SPEC] [MORE_OF_METADATA] [MODE]
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: PersistentVolume
metadata:
  name: pv-$1
  ${4:-}
spec:
  capacity: {storage: 1Mi}
  accessModes: [${5:-ReadWriteOnce}]
  storageClassName: ""
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: default, name: $1}
  $2
  ${3:-persistentVolumeReclaimPolicy: Delete}
YAML
}
bind() { # bind CLAIM: what the binder does
  local uid
  uid=$(jsonpath "pvc/$1" .metadata.uid)
  kubectl patch pv "pv-$1" --type=merge -p "{\"spec\":{\"claimRef\":{\"uid\":\"$uid\"}}}" >/dev/null
  kubectl patch pv "pv-$1" --type=merge --subresource=status -p '{"status":{"phase":"Bound"}}' >/dev/null
  kubectl annotate pvc "$1" --overwrite pv.kubernetes.io/bind-completed=yes >/dev/null
  kubectl patch pvc "$1" --type=merge --subresource=status -p '{"status":{"phase":"Bound"}}' >/dev/null
}
on_node() { echo "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$1]}]}]}}"; }
kept_by_node() { # kept_by_node CLAIM [POLICY]: as the provisioner makes it
  claim "$1"
  volume "$1" "local: {path: $root/pv-$1_default_$1}" "$(on_node "$node")
  persistentVolumeReclaimPolicy: ${2:-Delete}" "annotations: {pv.kubernetes.io/provisioned-by: muster.dev/local-path}
  finalizers: [muster.dev/local-path]"
  bind "$1"
}

say "== a hostPath PersistentVolume: data outlives the pod"
claim host
volume host "hostPath: {path: $SCRATCH/host}"
bind host
runs writer host 'echo from-writer >/data/note; mkdir -p /data/dir; echo below >/data/dir/file'
kubectl delete pod writer >/dev/null
equals "$(runs reader host 'cat /data/note')" from-writer "what the next pod reads"
equals "$(cat "$SCRATCH/host/note")" from-writer "what is on the node"
equals "$(runs sub host 'cat /data/file' ', subPath: dir')" below "a subPath"
equals "$(runs ro host 'touch /data/x 2>/dev/null || echo refused' ', readOnly: true')" refused "a readOnly mount"
claim inside
volume inside "hostPath: {path: $DATA/pki}"
bind inside
pod thief inside 'cat /data/*'
waits thief "inside muster's own data folder"
kubectl delete pod thief reader sub ro >/dev/null

say "== a claim that is not bound: the pod waits, then runs"
claim late
pod waiter late 'echo up' '' "nodeName: $node"
waits waiter "error processing PVC default/late: "
shows "Unable to attach or mount volumes: unmounted volumes=[v]" events_of waiter FailedMount
mkdir "$SCRATCH/disk-of-late"
volume late "local: {path: $SCRATCH/disk-of-late}" "$(on_node "$node")"
bind late
kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod/waiter --timeout=90s >/dev/null
equals "$(kubectl logs waiter)" up "the pod after its claim was bound"
pod nothing no-such-claim 'echo up' '' "nodeName: $node"
waits nothing 'failed to fetch PVC from API server: persistentvolumeclaims "no-such-claim" not found'

say "== what cannot be mounted is said"
claim elsewhere
volume elsewhere "local: {path: $SCRATCH/host}" "$(on_node other-node)"
bind elsewhere
pod away elsewhere 'echo up' '' "nodeName: $node"
waits away 'MountVolume.NodeAffinity check failed for volume "pv-elsewhere" : no matching NodeSelectorTerms'
claim absent
volume absent "local: {path: $SCRATCH/no-such-folder}" "$(on_node "$node")"
bind absent
pod absent absent 'echo up'
waits absent "path \"$SCRATCH/no-such-folder\" does not exist"
claim csi
volume csi "csi: {driver: disk.example.com, volumeHandle: one}"
bind csi
pod csi csi 'echo up'
waits csi "PersistentVolumes of kind csi are not supported on this node"
claim robber-host
kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: robber}
spec:
  nodeName: $node
  volumes: [{name: host, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}}}]
  containers: [{name: main, image: none, command: [sleep, "1000"], volumeMounts: [{name: host, mountPath: /data}]}]
YAML
waits robber "PVC default/robber-host was not created for pod default/robber (pod is not owner)"
claim single ReadWriteOncePod
volume single "hostPath: {path: $SCRATCH/host}" "" "" ReadWriteOncePod
bind single
pod first single 'sleep 1000' '' "nodeName: $node"
eventually 30 pod_phase_is first Running
pod second single 'echo mine' '' "nodeName: $node"
waits second "volume uses the ReadWriteOncePod access mode and is already in use by another pod"
kubectl delete pod first >/dev/null
kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod/second --timeout=90s >/dev/null
kubectl delete pod --all >/dev/null

say "== a volume that the node keeps: made for the first pod, there after kill -9 of the agent"
kept_by_node data
runs maker data 'stat -c %a /data; echo one >/data/log' | grep -qx 777 || fail "mode of a new volume"
folder=$root/pv-data_default_data
equals "$(cat "$folder/log")" one "the node's folder"
pod keeper data 'while [ ! -e /data/end ]; do sleep 0.1; done; cat /data/log'
eventually 30 pod_phase_is keeper Running
kill -9 "$(control_plane_pid)"
echo two >>"$folder/log"
up >/dev/null
equals "$(jsonpath pod/keeper '.status.containerStatuses[0].restartCount')" 0 "restarts of the pod"
kubectl exec keeper -- touch /data/end
kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod/keeper --timeout=60s >/dev/null
equals "$(kubectl logs keeper | tr '\n' ' ')" "one two " "what the pod saw to its end"
"$MUSTER" down --data-dir "$DATA" >/dev/null
equals "$(tail -n 1 "$folder/log")" two "after muster down"
up >/dev/null
equals "$(runs again data 'tail -n 1 /data/log')" two "after muster up"
kubectl delete pod --all >/dev/null

say "== data that is gone is said to be gone, and no empty folder takes its place"
mv "$folder" "$SCRATCH/away"
pod misser data 'cat /data/log'
waits misser "$folder is gone with what was in it"
has_no_file "$folder" || fail "made again"
mv "$SCRATCH/away" "$folder"
kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod/misser --timeout=90s >/dev/null
equals "$(kubectl logs misser | tr '\n' ' ')" "one two " "the pod after its folder was put back"
kubectl delete pod --all >/dev/null

say "== its PersistentVolume goes: the folder too, when the last pod is gone, and no link is followed"
pod user data "ln -s $SCRATCH/outside /data/link; ln -s / /data/all; mkdir -p /data/a/b; ln -s $SCRATCH/outside /data/a/b/c; chmod 0 /data/a; touch /data/ready; sleep 1000"
eventually 30 has_file "$folder/ready"
kubectl delete pvc data --wait=false >/dev/null
kubectl delete pv pv-data --wait=false --ignore-not-found >/dev/null
equals "$(kubectl exec user -- tail -n 1 /data/log)" two "the pod that still has it"
has_file "$folder/log" || fail "removed under a pod"
kubectl delete pod user >/dev/null
eventually 30 is_gone pv/pv-data
has_no_file "$folder" || fail "the folder is still there: $(ls -la "$folder")"
equals "$(cat "$SCRATCH/outside/file")" precious "what a link led to"
equals "$(ls -A "$root")" "" "the node's folder of volumes"

say "== killed while it removes"
kept_by_node big
runs filler big 'true'
kubectl delete pod filler >/dev/null
(cd "$root/pv-big_default_big" && for i in $(seq 200); do mkdir -p "d$i/e" && touch "d$i"/{1..100} "d$i/e/f"; done)
kubectl delete pvc big --wait=false >/dev/null
kubectl delete pv pv-big --wait=false --ignore-not-found >/dev/null
kill -9 "$(control_plane_pid)"
up >/dev/null
eventually 60 is_gone pv/pv-big
nothing_left() { equals "$(ls -A "$root")" "" "the node's folder of volumes"; }
eventually 30 nothing_left

say "== Retain keeps it, and so does the node what no PersistentVolume is known for"
kept_by_node kept Retain
runs kept kept 'echo kept >/data/note'
kubectl delete pod kept >/dev/null
kubectl delete pvc kept --wait=false >/dev/null
kubectl delete pv pv-kept --wait=false >/dev/null
eventually 30 is_gone pv/pv-kept
# As if an older backup had been restored.
mkdir "$root/pv-later_default_later"
echo later >"$root/pv-later_default_later/note"
kill -9 "$(control_plane_pid)"
up >/dev/null
told() { grep -q 'pv-later_default_later has no PersistentVolume' "$DATA/logs/muster.log"; }
eventually 60 told
equals "$(cat "$root/pv-later_default_later/note")" later "a volume that no PersistentVolume is known for"
equals "$(cat "$root/pv-kept_default_kept/note")" kept "a retained volume"

# What the controllers do.
with_controllers() {
  kubectl apply -f - >/dev/null <<YAML
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 2
  selector: {matchLabels: {app: db}}
  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Retain}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: none
          command: [sh, -c, 'hostname >>/data/starts; exec sleep 1000']
          volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
YAML
  kubectl rollout status statefulset/db --timeout=90s >/dev/null
  local volume
  volume=$(jsonpath pvc/data-db-0 .spec.volumeName)
  equals "$(jsonpath pvc/data-db-0 .status.phase) $(jsonpath "pv/$volume" .status.phase)" "Bound Bound" "phases"
  equals "$(jsonpath "pv/$volume" .spec.local.path)" "$root/${volume}_default_data-db-0" "path of the volume"
  kubectl delete pod db-0 >/dev/null
  kubectl rollout status statefulset/db --timeout=90s >/dev/null
  starts_are() { equals "$(kubectl exec db-0 -- sort -u /data/starts) $(kubectl exec db-0 -- wc -l /data/starts)" "$1" "starts"; }
  eventually 30 starts_are "db-0 2 /data/starts"
  local second
  second=$(jsonpath pvc/data-db-1 .spec.volumeName)
  kubectl scale statefulset/db --replicas=1 >/dev/null
  eventually 60 is_gone pvc/data-db-1
  eventually 60 is_gone "pv/$second"
  eventually 30 has_no_file "$root/${second}_default_data-db-1"
  kubectl delete statefulset db >/dev/null
  eventually 60 is_gone pod/db-0
  equals "$(sort -u "$root/${volume}_default_data-db-0/starts")" db-0 "a claim that outlives its set"
  kubectl delete pvc data-db-0 >/dev/null
  eventually 60 is_gone "pv/$volume"
  eventually 30 has_no_file "$root/${volume}_default_data-db-0"

  # A claim of the pod's own goes with it.
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: scratch}
spec:
  restartPolicy: Never
  volumes: [{name: own, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}}}]
  containers: [{name: main, image: none, command: [sh, -c, 'echo x >/data/file'], volumeMounts: [{name: own, mountPath: /data}]}]
YAML
  kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod/scratch --timeout=90s >/dev/null
  volume=$(jsonpath pvc/scratch-own .spec.volumeName)
  kubectl delete pod scratch >/dev/null
  eventually 60 is_gone pvc/scratch-own
  eventually 60 is_gone "pv/$volume"
  eventually 30 has_no_file "$root/${volume}_default_scratch-own"
}
say "== StatefulSets and ephemeral volumes"
with_controllers

"$MUSTER" down --purge --data-dir "$DATA" >/dev/null
has_no_file "$root" || fail "muster down --purge left $(ls -la "$root")"
equals "$(cat "$SCRATCH/outside/file") $(cat "$SCRATCH/host/note")" "precious from-writer" "what is not muster's"
say "result: claims lead to their volumes, which outlive pods and agents and go with their PersistentVolumes"
