#!/usr/bin/env bash
# The article's look at allocatable: the GPUs of a node, one less when one is lost, 0 when both are; and the
# node itself says which and why, there is no plugin whose log one would have to find.
source "$(dirname "$0")/../lib.sh"
a100 2
up_machine
allocatable() { kubectl get nodes -o json | jq -r '.items[].status.allocatable["nvidia.com/gpu"]'; }
allocatable_is() { equals "$(allocatable)" "$1" allocatable; }
allocatable_is 2
cp "$MUSTER_FAKE_NVML" "$SCRATCH/fine"
sed '/^gpu GPU-1/a error 15' "$SCRATCH/fine" | driver
eventually 20 allocatable_is 1
shows "GPU 1 (GPU-1, NVIDIA A100-SXM4-40GB): GPU is lost" kubectl describe "node/$(real_node)"
sed '/^gpu /a error 15' "$SCRATCH/fine" | driver
eventually 20 allocatable_is 0
shows "GPU 0 (GPU-0, NVIDIA A100-SXM4-40GB): " kubectl describe "node/$(real_node)"
eventually 30 has_event "$(real_node)" GPUUnhealthy "is not offered to pods any more"
