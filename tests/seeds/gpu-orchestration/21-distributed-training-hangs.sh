#!/usr/bin/env bash
# A training hangs where gradients are added up: muster explain says that no rank speaks, and which of them the others wait for; and
# who ended while others wait, and who runs on after a failure.
source "$(dirname "$0")/../lib.sh"
up_machine
# In place of five minutes.
explained() { contains "$("$MUSTER" explain job "$1" --silence 8s)" "$2" "muster explain"; }
trained() { contains "$(kubectl logs "$1")" "step 1" "log of $1"; }

# Who waits for a rank that has ended, and who runs on after one has failed.
ranks() { # ranks NAME WORKER_ENDS_WITH
  kubectl apply -f - <<YAML
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: $1}
spec:
  pytorchReplicaSpecs:
    Master: {restartPolicy: Never, template: {spec: {terminationGracePeriodSeconds: 0, containers: [{name: pytorch, image: "pytorch/pytorch:latest", command: [sh, -c, "echo waits; exec sleep 1000"]}]}}}
    Worker: {restartPolicy: Never, template: {spec: {containers: [{name: pytorch, image: "pytorch/pytorch:latest", command: [sh, -c, "exit $2"]}]}}}
YAML
}
ranks leaves 0
ranks fails 3
eventually 60 explained leaves "leaves-worker-0 has ended with exit code 0 (Completed), and leaves-master-0 still runs: those wait for it"
eventually 30 explained fails "fails-master-0 still runs and keeps what was given to it, although the job has failed"
# Who speaks is not suspected.
contains "$("$MUSTER" explain job leaves)" "runs" "muster explain"
if "$MUSTER" explain job leaves | grep "no rank has logged"; then fail "silence of less than five minutes"; fi
kubectl delete pytorchjob leaves fails --wait=false

kubectl apply -f "$EXAMPLE"
for pod in master-0 worker-0 worker-1; do eventually 90 trained hangs-$pod; done
eventually 60 explained hangs "no rank has logged anything for"
eventually 90 explained hangs "hangs-worker-1 keeps a CPU busy while hangs-master-0, hangs-worker-0 sleep: the others wait for hangs-worker-1"
explained hangs "NCCL_DEBUG=INFO"
in_json() { contains "$("$MUSTER" explain job hangs --silence 8s -o json | jq -r '.faults[1]')" "the others wait for hangs-worker-1" "faults in JSON"; }
eventually 60 in_json
say "result: a hang, and the rank that the others wait for"
