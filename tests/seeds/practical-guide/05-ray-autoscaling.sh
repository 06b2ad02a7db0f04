#!/usr/bin/env bash
# minReplicas: 0. Workers come when actors or tasks ask for CPUs, and go when they are idle: Ray's own autoscaler, beside the head, says which.
source "$(dirname "$0")/../lib.sh"
source tests/seeds/ray.sh
up_machine
with_ray <"$EXAMPLE" | kubectl apply -f -
kubectl wait raycluster/on-demand --for=jsonpath='{.status.state}'=ready --timeout=240s
workers() { kubectl get pods -l ray.io/cluster=on-demand,ray.io/node-type=worker -o name | wc -l; }
has_workers() { [ "$(workers)" = "$1" ] || { kubectl get raycluster,pods; return 1; }; }
equals "$(workers)" 0 "workers of an idle cluster"
# Two actors that hold a CPU each need two workers at a time (a task that waits for another gives its CPU away).
in_head on-demand python -c '
import ray, socket
ray.init(log_to_driver=False)
@ray.remote(num_cpus=1)
class Holder:
    def where(self): return socket.gethostname()
holders = [Holder.remote() for _ in range(2)]
print("ran on", len(set(ray.get([holder.where.remote() for holder in holders]))), "workers")' >"$SCRATCH/out" 2>&1 || fail "$(cat "$SCRATCH/out")"
contains "$(cat "$SCRATCH/out")" "ran on 2 workers" "actors"
eventually 90 has_workers 0
is_clear() { [ "$(jsonpath raycluster/on-demand '.spec.workerGroupSpecs[0].replicas} {.spec.workerGroupSpecs[0].scaleStrategy.workersToDelete')" = "0 []" ]; }
eventually 30 is_clear
equals "$(jsonpath "pod/$(head_of on-demand)" '.status.containerStatuses[?(@.name=="autoscaler")].restartCount')" 0 "restarts of the autoscaler"
say "result: Ray's autoscaler went from 0 workers to 2 and back"
