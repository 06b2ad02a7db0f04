#!/usr/bin/env bash
# Issue 6: ResourceQuotas through stock kubectl: a Deployment gets as many pods as its namespace may have and its ReplicaSet
# says why there are no more, a burst of creates gets past no quota, and what goes makes room.
source "$(dirname "$0")/lib.sh"
up --simulate-nodes 2

kubectl create quota small --hard=pods=3,requests.nvidia.com/gpu=2 >/dev/null
kubectl create deployment wide --image=none --replicas=10 -- sleep 1000 >/dev/null
used_is() { equals "$(jsonpath quota/small ".status.used.$1")" "$2" "used $1"; }
eventually 30 used_is pods 3
shows "is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3" kubectl get events --field-selector reason=FailedCreate
equals "$(kubectl get pods -o name | wc -l)" 3 "pods of the Deployment"
describe_says() { grep -E 'pods +3 +3' <<<"$(kubectl describe quota small)"; }
eventually 30 describe_says

kubectl delete deployment wide >/dev/null
eventually 60 used_is pods 0

pod() { # pod NAME GPUS
  cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  containers: [{name: c, image: none, command: [sleep, "1000"], resources: {limits: {nvidia.com/gpu: $2}}}]
YAML
}
# Each is a process of its own; the quota of GPUs lets two of them in.
mkdir "$SCRATCH/burst"
pids=()
for i in $(seq 50); do
  (pod "burst-$i" 1 | kubectl create -f - >"$SCRATCH/burst/$i" 2>&1 || true) &
  pids+=($!)
done
wait "${pids[@]}"
equals "$(grep -l created "$SCRATCH"/burst/* | wc -l)" 2 "pods of the burst"
equals "$(grep -l "exceeded quota: small, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=2" \
  "$SCRATCH"/burst/* | wc -l)" 48 "refusals of the burst"
eventually 30 used_is 'requests\.nvidia\.com/gpu' 2

kubectl delete "$(kubectl get pods -o name | head -n 1)" --grace-period=0 --force >/dev/null 2>&1
eventually 30 used_is 'requests\.nvidia\.com/gpu' 1
pod next 1 | kubectl create -f - >/dev/null
eventually 30 used_is 'requests\.nvidia\.com/gpu' 2

# What must be stated; and what is counted by kind.
kubectl create quota strict --hard=limits.cpu=1,count/deployments.apps=0 >/dev/null
refused=$(kubectl run silent --image=none 2>&1) && fail "a pod without limits was taken"
contains "$refused" 'pods "silent" is forbidden: failed quota: strict: must specify limits.cpu for: silent'
refused=$(kubectl create deployment one --image=none 2>&1) && fail "a Deployment above the count was taken"
contains "$refused" "exceeded quota: strict, requested: count/deployments.apps=1, used: count/deployments.apps=0, limited: count/deployments.apps=0"
