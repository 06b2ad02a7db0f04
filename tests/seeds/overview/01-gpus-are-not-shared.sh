#!/usr/bin/env bash
# Two pods with a GPU each have different ones, a third waits until one of them ends.
source "$(dirname "$0")/../lib.sh"
a100 2
up_machine
kubectl apply -f "$EXAMPLE"
running() { kubectl get pods --field-selector status.phase=Running -o name | cut -d/ -f2; }
two_run() { [ "$(running | wc -l)" = 2 ]; }
eventually 20 two_run
gpu() { kubectl exec "$1" -- sh -c 'echo $NVIDIA_VISIBLE_DEVICES'; }
equals "$(for name in $(running); do gpu "$name"; done | sort | xargs)" "GPU-0 GPU-1" "GPUs of the two"
waiting=$(kubectl get pods --field-selector status.phase=Pending -o 'jsonpath={.items[0].metadata.name}')
eventually 10 waits_for "$waiting" "Insufficient nvidia.com/gpu"
kubectl delete pod "$(running | head -n 1)" --grace-period=0 --force 2>/dev/null
eventually 20 pod_phase_is "$waiting" Running
