#!/usr/bin/env bash
# A selector for preemptible nodes: the pod waits for one and takes no other. A node of these that is taken back is gone after its
# notice; a gang with one pod there begins anew elsewhere, as a whole, and no attempt of its is lost.
source "$(dirname "$0")/../lib.sh"
up_machine --simulate-nodes 4
kubectl apply -f "$EXAMPLE"
eventually 10 waits_for spot-training "didn't match Pod's node affinity/selector"
kubectl label node simulated-0000 cloud.google.com/gke-preemptible=false
kubectl label node simulated-0001 cloud.google.com/gke-preemptible=true
eventually 20 pod_phase_is spot-training Running
equals "$(node_of spot-training)" simulated-0001 "node"

kubectl label node simulated-0002 simulated-0003 cloud.google.com/gke-preemptible=true
kubectl apply -f - <<'YAML' 2>"$SCRATCH/told"
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: gang}
spec:
  runPolicy: {backoffLimit: 0}
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template:
        spec:
          nodeSelector: {cloud.google.com/gke-preemptible: "true"}
          containers:
            - name: pytorch
              image: pytorch/pytorch:latest
              resources: {limits: {nvidia.com/gpu: "8"}}
YAML
contains "$(cat "$SCRATCH/told")" "no volume of the pod outlives them" "warning"
eventually 20 job_is gang Running
uids() { kubectl get pods -l training.kubeflow.org/job-name=gang -o 'jsonpath={.items[*].metadata.uid}'; }
before=$(uids)
taken=$(node_of gang-worker-1)
muster node interrupt "$taken" --after 3s
nodes_of_gang() { kubectl get pods -l training.kubeflow.org/job-name=gang -o 'jsonpath={.items[*].spec.nodeName}'; }
gone() { ! kubectl get node "$taken"; }
eventually 30 gone
anew() { # both are others, and run where a node is
  local now uid
  now=$(uids)
  [ "$(wc -w <<<"$now")" = 2 ] && job_is gang Running && [[ "$(nodes_of_gang)" != *"$taken"* ]] || return 1
  for uid in $before; do [[ "$now" != *"$uid"* ]] || return 1; done
}
eventually 60 anew
shows "is restarting because" kubectl get events --field-selector "involvedObject.name=gang" -o 'jsonpath={.items[*].message}'
say "result: $taken was taken back, the gang runs on $(nodes_of_gang)"
