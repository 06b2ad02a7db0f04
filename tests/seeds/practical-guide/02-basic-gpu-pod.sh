#!/usr/bin/env bash
# The basic GPU pod: it waits for a node with the label, tolerates the taint, trains from one claim into the other, on a GPU that
# is its own.
source "$(dirname "$0")/../lib.sh"
a100 2
up_machine
node=$(real_node)
taint nvidia.com/gpu=true:NoSchedule
told=$(fit "$EXAMPLE" | kubectl apply -f - 2>&1)
contains "$told" 'Warning: Pod gpu-training-pod: spec.containers[0].env[1].value: CUDA_VISIBLE_DEVICES knows no "all"'
eventually 10 waits_for gpu-training-pod "didn't match Pod's node affinity/selector"
kubectl label node "$node" accelerator=nvidia-a100
eventually 30 pod_phase_is gpu-training-pod Succeeded
equals "$(kubectl logs gpu-training-pod)" "weight 3.0 on GPU-0" "what the training printed"
volume=$(jsonpath pvc/model-artifacts-pvc .spec.volumeName)
model=$(kubectl get pv "$volume" -o 'jsonpath={.spec.hostPath.path}{.spec.local.path}')
contains "$(cat "$model/model.json")" '"weight": 2.99' "the model in the claim"

# At the article's size it is for a node that has it.
"$MUSTER" down --data-dir "$DATA" >/dev/null
up_machine --simulate-nodes 1
kubectl delete pod gpu-training-pod --wait >/dev/null
kubectl label node simulated-0000 accelerator=nvidia-a100
kubectl label node "$node" accelerator-
kubectl delete pvc --all --wait >/dev/null
kubectl apply -f "$EXAMPLE" 2>/dev/null
eventually 20 pod_phase_is gpu-training-pod Running
equals "$(node_of gpu-training-pod)" simulated-0000 "node"
