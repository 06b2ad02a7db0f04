#!/usr/bin/env bash
# Node affinity for a label that says NVLink: the pod waits for a node that has it.
source "$(dirname "$0")/../lib.sh"
up_machine --simulate-nodes 2
kubectl apply -f "$EXAMPLE"
eventually 10 waits_for nvlink-training "didn't match Pod's node affinity/selector"
kubectl label node simulated-0001 gpu-topology=pcie
kubectl label node simulated-0001 gpu-topology=nvlink --overwrite
eventually 20 pod_phase_is nvlink-training Running
equals "$(node_of nvlink-training)" simulated-0001 "node"
