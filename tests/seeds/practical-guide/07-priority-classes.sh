#!/usr/bin/env bash
# Three tiers: development goes first, training next, and what serves is never evicted for training.
source "$(dirname "$0")/../lib.sh"
a100 3
up_machine
kubectl apply -f "$EXAMPLE"
equals "$(kubectl get priorityclass production-serving training-critical development -o 'jsonpath={.items[*].value}')" "1000 500 100"
pod() { # pod NAME CLASS GPUS
  kubectl apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  priorityClassName: $2
  terminationGracePeriodSeconds: 0
  containers:
    - {name: main, image: "pytorch/pytorch:latest", command: [sleep, "1000"], resources: {limits: {nvidia.com/gpu: $3}}}
YAML
}
gone() { [ -z "$(kubectl get pod "$1" --ignore-not-found -o name)" ]; }
pod serving production-serving 1
pod training training-critical 1
pod notebook development 1
for name in serving training notebook; do eventually 20 pod_phase_is $name Running; done

# One more of training takes development's place, not another's.
pod training-2 training-critical 1
eventually 20 pod_phase_is training-2 Running
gone notebook || fail "development is still there"
eventually 30 has_event notebook Preempted "Preempted by pod"
# A third one has nobody below it: training waits and serving stays.
pod training-3 training-critical 1
eventually 10 waits_for training-3 "Insufficient nvidia.com/gpu"
# Serving takes training's place, once and again, until all serve.
pod serving-2 production-serving 1
pod serving-3 production-serving 1
for name in serving-2 serving-3; do eventually 20 pod_phase_is $name Running; done
for name in training training-2; do eventually 20 gone $name; done
# And no training, nor all of it, gets that back.
pod training-4 training-critical 3
eventually 10 waits_for training-4 "Insufficient nvidia.com/gpu"
for name in serving serving-2 serving-3; do
  pod_phase_is $name Running || fail "$name does not run"
  equals "$(events_of $name Preempted)" "" "preemption of $name"
  equals "$(jsonpath pod/$name '.status.containerStatuses[0].restartCount')" 0 "restarts of $name"
done
