#!/usr/bin/env bash
# "On-demand nodes: expensive but immediate; spot nodes: cheap but may terminate": one pool with both gives spot to what does not mind and
# on-demand to what asks for it; when the spot node is taken back, the job gets another one.
source "$(dirname "$0")/../lib.sh"
up_machine --node-start-delay 1s
# One after the other: pods that come together may each get the node that joined for the other.
kubectl apply -f "$EXAMPLE" -l capacity!=on-demand
claim_of() { kubectl get nodeclaims -l "karpenter.sh/capacity-type=$1" -o 'jsonpath={.items[*].metadata.name}'; }
runs_on() { # runs_on JOB CAPACITY
  local node
  node=$(kubectl get pods -l "job-name=$1" --field-selector status.phase=Running -o 'jsonpath={.items[0].spec.nodeName}')
  [ -n "$node" ] && equals "$(jsonpath "node/$node" '.metadata.labels.karpenter\.sh/capacity-type')" "$2" "capacity type of $node"
}
eventually 40 runs_on experiment spot
kubectl apply -f "$EXAMPLE" -l capacity=on-demand
eventually 40 runs_on must-complete on-demand
taken=$(claim_of spot)
contains "$(muster node list | grep "^$taken ")" karpenter.sh/capacity-type=spot "nodes"
muster node interrupt "$taken" --after 3s
gone() { ! kubectl get node "$taken" && ! kubectl get nodeclaim "$taken"; }
eventually 40 gone
elsewhere() { runs_on experiment spot && [ "$(claim_of spot)" != "$taken" ]; }
eventually 40 elsewhere
equals "$(jsonpath job/experiment '.status.conditions[?(@.type=="Failed")].status')" "" "the job has failed"
say "result: $taken was taken back, the job runs on $(claim_of spot)"
