#!/usr/bin/env bash
# The article's way to see GPUs: `kubectl describe node`, once none and once all of them are taken. Nothing was installed. And the four
# measurements that it names, of each GPU with the pod that has it.
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

sed 's/^gpu .*/&\nutil 87\nused 34359738368\ntemp 66\npower 301000/' "$MUSTER_FAKE_NVML" | driver
measured() { # measured NAME VALUE: of all eight
  equals "$(kubectl get --raw "/api/v1/nodes/$node/proxy/metrics" | grep "^DCGM_FI_DEV_$1{" | grep 'pod="two-gpus"' | awk '{print $NF}' | sort | uniq -c | xargs)" "8 $2" "$1"
}
eventually 20 measured GPU_UTIL 87
measured FB_USED 32768
measured GPU_TEMP 66
measured POWER_USAGE 301.000
