#!/usr/bin/env bash
# A node whose disk is nearly full says so, evicts the pod that has most on it, takes no other meanwhile, and recovers.
source "$(dirname "$0")/lib.sh"
mkdir "$SCRATCH/disk"
mount -t tmpfs -o size=200m disk "$SCRATCH/disk" # pressure begins when a tenth of it is left
DATA=$SCRATCH/disk/data KUBECONFIG=$SCRATCH/disk/data/kubeconfig
up

node=$(kubectl get nodes -o name | head -1)
pressure() { jsonpath "$node" '.status.conditions[?(@.type=="DiskPressure")].status'; }
pressure_is() { [ "$(pressure)" = "$1" ]; }
tainted() { [[ $(jsonpath "$node" '.spec.taints[*].key') == *node.kubernetes.io/disk-pressure* ]]; }
pod() { # pod NAME MIB [SPEC]: writes so much and stays
  kubectl apply -f - >/dev/null <<YAML
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1"}, "spec": {${3-} "restartPolicy": "Never",
 "terminationGracePeriodSeconds": 0, "volumes": [{"name": "work", "emptyDir": {}}], "containers": [{"name": "main",
 "image": "none", "command": ["sh", "-c", "head -c $2M /dev/zero >/scratch/file; sleep 1000"],
 "volumeMounts": [{"name": "work", "mountPath": "/scratch"}]}]}}
YAML
}

pod small 10
eventually 30 pod_phase_is small Running
eventually 30 pressure_is False
pod large 172
eventually 30 pressure_is True
equals "$(jsonpath "$node" '.status.conditions[?(@.type=="DiskPressure")].reason')" KubeletHasDiskPressure
eventually 30 pod_phase_is large Failed
equals "$(jsonpath pod/large .status.reason)" Evicted
contains "$(jsonpath pod/large .status.message)" 'The node was low on resource: ephemeral-storage.'
eventually 30 tainted

# The scheduler keeps new pods away; one that is sent to the node all the same is refused there.
pod later 1
pod forced 1 "\"nodeName\": \"${node#node/}\","
eventually 30 pod_phase_is forced Failed
equals "$(jsonpath pod/forced .status.reason) $(jsonpath pod/forced .status.message)" \
  "Evicted Pod was rejected: The node had condition: [DiskPressure]. "
equals "$(jsonpath pod/later .status.phase) $(pressure)" "Pending True"
contains "$(jsonpath pod/later '.status.conditions[?(@.type=="PodScheduled")].message')" disk-pressure

# What the evicted pod wrote is gone, so the pressure ends; upstream waits a while as well.
eventually 60 pressure_is False
eventually 30 pod_phase_is later Running
if tainted; then fail "the taint is left"; fi
equals "$(jsonpath pod/small .status.phase) $(jsonpath pod/small '.status.containerStatuses[0].restartCount')" "Running 0"
say "result: disk of 200 MB: pressure told, the largest pod evicted, new pods kept away until it ended"
