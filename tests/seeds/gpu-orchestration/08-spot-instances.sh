#!/usr/bin/env bash
# A selector for preemptible nodes: the pod waits for one and takes no other.
source "$(dirname "$0")/../lib.sh"
up_machine --simulate-nodes 2
kubectl apply -f "$EXAMPLE"
eventually 10 waits_for spot-training "didn't match Pod's node affinity/selector"
kubectl label node simulated-0000 cloud.google.com/gke-preemptible=false
kubectl label node simulated-0001 cloud.google.com/gke-preemptible=true
eventually 20 pod_phase_is spot-training Running
equals "$(node_of spot-training)" simulated-0001 "node"
