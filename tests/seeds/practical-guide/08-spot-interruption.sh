#!/usr/bin/env bash
# A spot node gets its notice: the trainer saves a checkpoint before it ends, no pod comes to the node, and the next one goes on where
# the first was. An end of this kind does not count where a podFailurePolicy says so, and counts where none does.
source "$(dirname "$0")/../lib.sh"
up_machine
node=$(real_node)
kubectl label node "$node" karpenter.sh/capacity-type=spot
kubectl apply -f "$EXAMPLE"
# No policy, no attempt to lose; and one that does not listen.
kubectl apply -f - <<'YAML'
apiVersion: batch/v1
kind: Job
metadata: {name: counts}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers:
        - {name: c, image: any, command: [sleep, "1000"]}
---
apiVersion: v1
kind: Pod
metadata: {name: deaf}
spec:
  terminationGracePeriodSeconds: 600
  containers:
    - {name: c, image: any, command: [bash, -c, "trap '' TERM; echo ready; while :; do sleep 0.1; done"]}
YAML
pods() { kubectl get pods -l job-name=spot-training --sort-by=.metadata.creationTimestamp -o name; }
printed() { contains "$(kubectl logs "$1")" "$2" "log of $1"; }
node_state() { contains "$(muster node list | grep "^$node ")" "$1" "state of $node"; }
steps() { sed -n "s/$1 at step //p"; }
eventually 90 kubectl wait --for=condition=Ready pod -l job-name=spot-training --timeout=20s
eventually 20 kubectl wait --for=condition=Ready pod -l job-name=counts --timeout=20s
first=$(pods)
eventually 20 printed pod/deaf ready
node_state karpenter.sh/capacity-type=spot

kubectl logs -f "$first" >"$SCRATCH/first.log" &
follower=$!
eventually 20 grep -q "starts at step 0" "$SCRATCH/first.log"
muster node interrupt "$node" --after 15s
wait $follower || true # the log ends with the pod
contains "$(cat "$SCRATCH/first.log")" "saved at step" "what the trainer said at its end"
contains "$(kubectl get node "$node" -o 'jsonpath={.spec.taints[*].key}')" muster.dev/interrupted "taints"
equals "$(kubectl get node "$node" -o 'jsonpath={.status.conditions[?(@.type=="Interrupted")].status}')" True "condition"
eventually 30 has_event "$node" SpotInterrupted "is taken back at"
eventually 90 kubectl wait --for=condition=Failed job/counts --timeout=20s
contains "$(jsonpath job/counts '.status.conditions[?(@.type=="Failed")].reason')" BackoffLimitExceeded "why it failed"

# Its time is over: who did not listen is ended, and nobody comes.
eventually 40 kubectl wait --for=delete pod/deaf --timeout=30s
eventually 20 node_state "taken back"
second() { [ "$(pods | wc -l)" -ge 1 ] && [ "$(pods | tail -n 1)" != "$first" ]; }
eventually 90 second
next=$(pods | tail -n 1)
equals "$(jsonpath "$next" .status.phase)" Pending "the next pod, while no spot node is there"
muster node restore "$node"
eventually 40 kubectl wait --for=condition=Ready "$next" --timeout=30s
saved=$(steps saved <"$SCRATCH/first.log")
eventually 20 printed "$next" "starts at step $saved"
[ "$saved" -gt 0 ] || fail "the checkpoint is of step $saved"
kubectl exec "$next" -- touch /checkpoints/finish || true # it may have ended before this was answered
eventually 90 kubectl wait --for=condition=Complete job/spot-training --timeout=20s
say "result: interrupted and resumed at step $saved"
