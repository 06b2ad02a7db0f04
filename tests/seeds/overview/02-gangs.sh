#!/usr/bin/env bash
# Three of four GPUs are free and a job wants four: none of its pods starts, so that none holds a GPU in vain, and smaller ones may
# use them meanwhile. When four are free all start.
source "$(dirname "$0")/../lib.sh"
a100 4
up_machine
pod() {
  kubectl apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "pytorch/pytorch:latest", command: [sleep, "1000"], resources: {limits: {nvidia.com/gpu: 1}}}]
YAML
}
pod holder
eventually 20 pod_phase_is holder Running
kubectl apply -f "$EXAMPLE"
eventually 20 waits_for ddp-worker-2 "nvidia.com/gpu"
bound() { kubectl get pods -l training.kubeflow.org/job-name=ddp -o 'jsonpath={.items[*].spec.nodeName}' | wc -w; }
equals "$(bound)" 0 "pods of the gang that hold a GPU in vain"
pod small
eventually 20 pod_phase_is small Running
contains "$("$MUSTER" explain job ddp)" "2 of 4 free" "muster explain"
kubectl delete pod small --wait >/dev/null
equals "$(bound)" 0 "pods of the gang"
kubectl delete pod holder --wait >/dev/null
for pod in master-0 worker-0 worker-1 worker-2; do eventually 20 pod_phase_is ddp-$pod Running; done
