#!/usr/bin/env bash
# No request reaches a model server before its model is loaded: not through the Service, however often one asks.
source "$(dirname "$0")/../lib.sh"
up_machine
sed 's/initialDelaySeconds: 60.*/initialDelaySeconds: 0/; s/periodSeconds: 10/periodSeconds: 1/' "$EXAMPLE" | kubectl apply -f -
address=$(jsonpath service/model-server .spec.clusterIP)
answer() { curl -s --max-time 1 "http://$address/" 2>/dev/null || true; }
running() { [ "$(kubectl get pods -l app=model-server -o 'jsonpath={.items[*].status.phase}')" = Running ]; }
ready() { [ "$(kubectl get pods -l app=model-server -o 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}')" = True ]; }
eventually 20 running
asked=0
until ready; do
  case $(answer) in *loading*) ready || fail "a request reached a server that was loading its model" ;; esac
  asked=$((asked + 1))
done
[ $asked -ge 2 ] || fail "the server was ready at once: the test shows nothing"
served() { [ "$(answer)" = prediction ]; }
eventually 10 served
kubectl rollout status deployment/model-server --timeout=10s
