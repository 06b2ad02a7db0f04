#!/usr/bin/env bash
# The article's way to see GPUs: `kubectl describe node`, once none and once all of them are taken. Nothing was installed.
source "$(dirname "$0")/../lib.sh"
a100 8
up_machine
node=$(real_node)
described() { kubectl describe node "$node"; }
for what in Capacity Allocatable; do
  equals "$(described | sed -n "/^$what:/,/^[^ ]/s/ *nvidia.com\/gpu: *//p")" 8 "$what of GPUs"
done
allocated() { described | sed -n '/^Allocated resources:/,/^Events/s/^ *nvidia.com\/gpu *//p' | xargs; }
allocated_is() { equals "$(allocated)" "$1" "allocated GPUs"; }
allocated_is "0 0"
sed 's/gpu: 2/gpu: 8/' examples/seeds/gpu-orchestration/01-resource-requests.yaml | kubectl apply -f -
eventually 20 pod_phase_is two-gpus Running
allocated_is "8 8"
