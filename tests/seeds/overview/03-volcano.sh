#!/usr/bin/env bash
# Pods for Volcano's scheduler with a PodGroup of their own: three start when three fit, and none before.
source "$(dirname "$0")/../lib.sh"
a100 3
up_machine
kubectl apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: holder}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "pytorch/pytorch:latest", command: [sleep, "1000"], resources: {limits: {nvidia.com/gpu: 1}}}]
YAML
eventually 20 pod_phase_is holder Running
kubectl apply -f "$EXAMPLE"
unschedulable() { contains "$(jsonpath podgroup/workers '.status.conditions[?(@.type=="Unschedulable")].message')" "nvidia.com/gpu" "why the gang waits"; }
eventually 20 unschedulable
equals "$(kubectl get pods -l job-name=workers -o 'jsonpath={.items[*].spec.nodeName}')" "" "pods of the gang that hold a GPU in vain"
kubectl delete pod holder
running() { equals "$(kubectl get pods -l job-name=workers -o 'jsonpath={.items[*].status.phase}')" "Running Running Running" "the gang"; }
eventually 30 running
say "result: a PodGroup of Volcano's started whole"
