#!/usr/bin/env bash
# A tainted GPU node takes what tolerates the taint; the rest goes elsewhere, or waits.
source "$(dirname "$0")/../lib.sh"
a100 1
up_machine
taint nvidia.com/gpu=true:NoSchedule
kubectl apply -f "$EXAMPLE"
eventually 20 pod_phase_is training Running
eventually 10 waits_for intruder "1 node(s) had untolerated taint {nvidia.com/gpu: true}"
contains "$("$MUSTER" explain pod intruder)" "nvidia.com/gpu" "muster explain"
taint nvidia.com/gpu-
eventually 20 pod_phase_is intruder Running
