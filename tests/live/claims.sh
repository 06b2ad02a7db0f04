#!/usr/bin/env bash
# Issue 6: claims and volumes through stock kubectl, on simulated nodes: binding at once and at the first pod, the default
# class, protection, ephemeral volumes, the claims of a StatefulSet. What the agent does with a directory: storage.sh.
source "$(dirname "$0")/lib.sh"
up --simulate-nodes 2

bound_to() { [ "$(jsonpath "pvc/$1" '.status.phase}{.spec.volumeName')" = "Bound$2" ]; }
bound() { [ "$(jsonpath "pvc/$1" .status.phase)" = Bound ]; }
gone() { ! kubectl get "$1" >/dev/null 2>&1; }
claim() { # claim NAME CLASS: of 1Gi
  kubectl apply -f - <<YAML >/dev/null
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $1}
spec: {accessModes: [ReadWriteOnce], storageClassName: $2, resources: {requests: {storage: 1Gi}}}
YAML
}
pod() { # pod NAME CLAIM
  kubectl apply -f - <<YAML >/dev/null
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  nodeSelector: {muster.dev/simulated: "true"}
  containers: [{name: c, image: none, volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: $2}}]
YAML
}

contains "$(kubectl get storageclass)" "local-path (default)" classes

# A volume that somebody made.
kubectl apply -f - <<'YAML' >/dev/null
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec: {capacity: {storage: 2Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /data}}
YAML
claim static '""'
eventually 20 bound_to static disk
equals "$(jsonpath pvc/static .status.capacity.storage)" 2Gi capacity
kubectl delete pvc static --timeout=30s >/dev/null
is_released() { [ "$(jsonpath pv/disk .status.phase)" = Released ]; }
eventually 20 is_released

# One that is made for the first pod.
kubectl apply -f - <<'YAML' >/dev/null
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
YAML
shows "waiting for first consumer to be created before binding" events_of data
kubectl apply -f - <<'YAML' >/dev/null
apiVersion: v1
kind: Pod
metadata: {name: nowhere}
spec:
  nodeSelector: {no: such-node}
  containers: [{name: c, image: none}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]
YAML
shows "waiting for pod nowhere to be scheduled" events_of data
contains "$(muster explain pvc data)" "event WaitForPodScheduled: waiting for pod nowhere to be scheduled" "muster explain pvc"
kubectl delete pod nowhere --grace-period=0 --force >/dev/null 2>&1
# One that no volume can be made for.
kubectl apply -f - <<'YAML' >/dev/null
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: never}
spec: {accessModes: [ReadWriteOnce], selector: {matchLabels: {a: b}}, resources: {requests: {storage: 1Gi}}}
YAML
pod in-vain never
explained() { contains "$(muster explain pod in-vain)" "claim never has no volume yet: ProvisioningFailed: claim.Spec.Selector is not supported"; }
eventually 20 explained
muster explain pod in-vain | grep "it fits now" && fail "explain says that it fits"
kubectl delete pod in-vain --grace-period=0 --force >/dev/null 2>&1
kubectl delete pvc never --timeout=30s >/dev/null
pod user data
eventually 30 bound data
volume=$(jsonpath pvc/data .spec.volumeName)
equals "$volume" "pvc-$(jsonpath pvc/data .metadata.uid)" "name of the volume"
eventually 30 pod_phase_is user Running
node=$(jsonpath pod/user .spec.nodeName)
equals "$(jsonpath "pv/$volume" '.spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values[0]')" \
  "$(kubectl get node "$node" -o 'jsonpath={.metadata.labels.kubernetes\.io/hostname}')" "its node"
contains "$(jsonpath "pv/$volume" .spec.local.path)" "/${volume}_default_data" path
contains "$(kubectl patch pvc data -p '{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}' 2>&1 || true)" \
  "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize" growth

# Nobody takes it away from its pod.
kubectl delete pvc data --wait=false >/dev/null
kubectl delete pv "$volume" --wait=false >/dev/null
claim marker '""'
shows "no persistent volumes available for this claim and no storage class is set" events_of marker
equals "$(jsonpath pvc/data .status.phase)" Bound "the claim in use"
contains "$(jsonpath "pv/$volume" .metadata.finalizers)" kubernetes.io/pv-protection "the volume in use"
kubectl delete pod user --grace-period=0 --force >/dev/null 2>&1
eventually 30 gone pvc/data
released() { gone "pv/$volume" || [ "$(jsonpath "pv/$volume" .metadata.finalizers)" = '["muster.dev/local-path"]' ]; }
eventually 30 released

# A pod's own.
kubectl apply -f - <<'YAML' >/dev/null
apiVersion: v1
kind: Pod
metadata: {name: scratch}
spec:
  nodeSelector: {muster.dev/simulated: "true"}
  containers: [{name: c, image: none, volumeMounts: [{name: v, mountPath: /v}]}]
  volumes:
    - name: v
      ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}
YAML
eventually 30 bound scratch-v
eventually 30 pod_phase_is scratch Running
kubectl delete pod scratch --timeout=60s >/dev/null
eventually 30 gone pvc/scratch-v

# A StatefulSet's.
kubectl apply -f - <<'YAML' >/dev/null
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Delete}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  template:
    metadata: {labels: {app: db}}
    spec: {nodeSelector: {muster.dev/simulated: "true"}, containers: [{name: c, image: none, volumeMounts: [{name: data, mountPath: /v}]}]}
YAML
kubectl rollout status statefulset/db --timeout=60s | tail -n 1
eventually 30 bound data-db-1
first=$(jsonpath pvc/data-db-0 .spec.volumeName)
kubectl scale statefulset db --replicas=1 >/dev/null
eventually 60 gone pvc/data-db-1
kubectl delete statefulset db --timeout=60s >/dev/null
bound_to data-db-0 "$first" || fail "the claim that is to stay: $(kubectl get pvc)"
say "claims: ok"
