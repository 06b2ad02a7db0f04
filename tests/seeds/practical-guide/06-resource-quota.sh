#!/usr/bin/env bash
# The team's quota: nine GPUs are one too many, whoever asks for them.
source "$(dirname "$0")/../lib.sh"
up_machine --simulate-nodes 2
told=$(kubectl apply -f "$EXAMPLE" 2>&1)
contains "$told" "Warning: ResourceQuota ml-team-gpu-quota: spec.hard[limits.nvidia.com/gpu]: nothing counts this name, so nothing is limited"
pod() { # pod NAME GPUS
  kubectl apply -n ml-research -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  containers:
    - name: c
      image: pytorch/pytorch:latest
      command: [sleep, "1000"]
      resources: {requests: {cpu: 1, memory: 1Gi, nvidia.com/gpu: $2}, limits: {nvidia.com/gpu: $2}}
YAML
}
pod six 6
refused=$(pod three 3 2>&1) && fail "a ninth GPU was given"
contains "$refused" "exceeded quota: ml-team-gpu-quota, requested: requests.nvidia.com/gpu=3, used: requests.nvidia.com/gpu=6, limited: requests.nvidia.com/gpu=8"
pod two 2
refused=$(kubectl run -n ml-research bare --image=busybox 2>&1) && fail "a pod that states no requests was taken"
contains "$refused" "must specify requests.cpu for: bare; requests.memory for: bare"
used_is() { [[ $(kubectl describe quota -n ml-research) =~ requests.nvidia.com/gpu\ +$1\ +8 ]]; }
eventually 10 used_is 8
