#!/usr/bin/env bash
# The RayCluster: head and workers come, join, share the claim, and a job that is submitted runs on the workers. One worker a group
# where Ray really runs; at the article's size on simulated nodes, where the pods are only said to run.
source "$(dirname "$0")/../lib.sh"
source tests/seeds/ray.sh
a100 1
up_machine
fit_ray "$EXAMPLE" | with_ray | kubectl apply -f -
kubectl config set-context --current --namespace ml-platform >/dev/null
kubectl wait raycluster/ml-platform-ray --for=jsonpath='{.status.state}'=ready --timeout=240s
equals "$(kubectl get pods -l ray.io/cluster=ml-platform-ray -o 'jsonpath={.items[*].metadata.labels.ray\.io/group}' | tr ' ' '\n' | sort | xargs)" \
  "cpu-workers gpu-workers headgroup" "groups"
in_head ml-platform-ray ray job submit --address http://127.0.0.1:8265 -- python -c '
import ray, socket
ray.init()
@ray.remote(num_cpus=1, scheduling_strategy="SPREAD")
def cpu(): return socket.gethostname().split("-")[3]
@ray.remote(num_gpus=1)
def gpu(): open("/mnt/data/model", "w").write("trained"); return socket.gethostname().split("-")[3]
print("nodes", len(ray.nodes()), "cpus", ray.cluster_resources()["CPU"], "gpus", ray.cluster_resources()["GPU"])
print("tasks ran on", sorted({ray.get(cpu.remote()) for _ in range(4)} | {ray.get(gpu.remote())}))' >"$SCRATCH/job" 2>&1 ||
  fail "the job: $(cat "$SCRATCH/job")"
contains "$(cat "$SCRATCH/job")" "nodes 3 cpus 2.0 gpus 1.0" "what Ray has"
contains "$(cat "$SCRATCH/job")" "tasks ran on ['cpu', 'gpu']" "groups that tasks ran on"
volume=$(jsonpath pvc/ray-shared-nfs .spec.volumeName)
equals "$(cat "$(kubectl get pv "$volume" -o 'jsonpath={.spec.hostPath.path}{.spec.local.path}')/model")" trained "what a task left in the claim"

# A worker that goes comes again, and joins.
worker=$(kubectl get pods -l ray.io/group=cpu-workers -o 'jsonpath={.items[0].metadata.uid}')
kubectl delete pod -l ray.io/group=cpu-workers --grace-period=1 >/dev/null
another() { [ "$(kubectl get pods -l ray.io/group=cpu-workers -o 'jsonpath={.items[0].metadata.uid}')" != "$worker" ]; }
eventually 30 another
# Suspended, all pods go; the cluster stays.
kubectl patch raycluster ml-platform-ray --type=merge -p '{"spec":{"suspend":true}}' >/dev/null
eventually 60 cluster_is ml-platform-ray suspended
equals "$(kubectl get pods -o name)" "" "pods of a suspended cluster"

# At the article's size.
kubectl config set-context --current --namespace default >/dev/null
"$MUSTER" down --data-dir "$DATA" >/dev/null
up_machine --simulate-nodes 2
kubectl delete namespace ml-platform --wait --timeout=60s >/dev/null
kubectl apply -f "$EXAMPLE" >/dev/null
kubectl wait raycluster/ml-platform-ray -n ml-platform --for=jsonpath='{.status.state}'=ready --timeout=60s
equals "$(kubectl get raycluster -n ml-platform --no-headers | awk '{print $2, $3, $4, $5, $6, $7}')" "6 6 36 208Gi 4 ready" "what kubectl get shows"
contains "$(muster explain raycluster ml-platform/ml-platform-ray)" "is ready: 6 of 6 workers are ready" "muster explain"
contains "$(muster status)" ml-platform-ray "muster status"
say "result: head and workers of Ray ran tasks, on GPUs too"
