#!/usr/bin/env bash
# Node affinity for workload=gpu-training, the label that the article's node group has.
source "$(dirname "$0")/../lib.sh"
up_machine --simulate-nodes 2
kubectl apply -f "$EXAMPLE"
eventually 10 waits_for routed "didn't match Pod's node affinity/selector"
contains "$("$MUSTER" explain pod routed)" "workload" "muster explain"
kubectl label node simulated-0001 workload=gpu-training
eventually 20 pod_phase_is routed Running
equals "$(node_of routed)" simulated-0001 "node"
