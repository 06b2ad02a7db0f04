#!/usr/bin/env bash
# The quota of the article counts memory, and not the GPUs that it names without requests.: the answer says so.
source "$(dirname "$0")/../lib.sh"
up_machine --simulate-nodes 3
told=$(kubectl apply -f "$EXAMPLE" 2>&1)
contains "$told" "Warning: ResourceQuota gpu-quota: spec.hard[nvidia.com/gpu]: nothing counts this name, so nothing is limited"
contains "$told" "limited as requests.nvidia.com/gpu"
pod() { # pod NAME MEMORY
  kubectl apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  containers:
    - name: c
      image: pytorch/pytorch:latest
      command: [sleep, "1000"]
      resources: {requests: {memory: $2}, limits: {nvidia.com/gpu: 8}}
YAML
}
for name in a b c; do pod $name 1Gi; eventually 20 pod_phase_is $name Running; done # 24 GPUs: nobody counts them
refused=$(pod d 254Gi 2>&1) && fail "257 GiB were given"
contains "$refused" "exceeded quota: gpu-quota, requested: memory=254Gi, used: memory=3Gi, limited: memory=256Gi"
# As the answer advises it.
kubectl delete pods --all --grace-period=0 --force >/dev/null 2>&1
sed 's/nvidia.com/requests.nvidia.com/' "$EXAMPLE" | kubectl apply -f - 2>&1 | grep -q Warning && fail "a warning about requests.nvidia.com/gpu"
for name in a b; do pod $name 1Gi; done
refused=$(pod c 1Gi 2>&1) && fail "24 GPUs were given"
contains "$refused" "requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=16, limited: requests.nvidia.com/gpu=16"
