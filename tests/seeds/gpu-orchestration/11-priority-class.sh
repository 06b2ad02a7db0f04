#!/usr/bin/env bash
# A PriorityClass that is nobody's default: production takes the GPU of what has none.
source "$(dirname "$0")/../lib.sh"
a100 1
up_machine
kubectl apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: experiment}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - {name: main, image: "pytorch/pytorch:latest", command: [sleep, "1000"], resources: {limits: {nvidia.com/gpu: 1}}}
YAML
eventually 20 pod_phase_is experiment Running
kubectl apply -f "$EXAMPLE"
eventually 20 pod_phase_is inference Running
equals "$(jsonpath pod/inference .spec.priority)" 1000 "priority"
equals "$(kubectl get pod experiment --ignore-not-found)" "" "the pod without a class"
eventually 30 has_event experiment Preempted "Preempted by pod"
