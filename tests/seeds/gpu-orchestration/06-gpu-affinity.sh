#!/usr/bin/env bash
# Anti-affinity by hostname: each replica has a node of its own, and one more than there are nodes waits and says why.
source "$(dirname "$0")/../lib.sh"
up_machine --simulate-nodes 3
kubectl apply -f "$EXAMPLE"
kubectl rollout status deployment/training-job --timeout=20s
equals "$(kubectl get pods -l app=training-job -o 'jsonpath={.items[*].spec.nodeName}' | tr ' ' '\n' | sort | xargs)" \
  "simulated-0000 simulated-0001 simulated-0002" "nodes of the replicas"
kubectl scale deployment/training-job --replicas=4
fourth() { kubectl get pods -l app=training-job --field-selector spec.nodeName= -o 'jsonpath={.items[0].metadata.name}'; }
says() { waits_for "$(fourth)" "didn't match pod anti-affinity rules"; }
eventually 10 says
contains "$("$MUSTER" explain pod "$(fourth)")" "anti-affinity" "muster explain"
