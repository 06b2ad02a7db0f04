#!/usr/bin/env bash
# "Switch traffic to green once validation passes. If issues arise, switch back": the Service's selector, and no request is lost.
source "$(dirname "$0")/../lib.sh"
up_machine
kubectl apply -f "$EXAMPLE"
kubectl rollout status deploy/model-blue deploy/model-green --timeout=90s
ip=$(jsonpath service/model .spec.clusterIP)
says() { [ "$(curl -sS --max-time 10 "http://$ip/")" = "$1" ]; }
eventually 30 says blue

# Asked all the time.
(
  while [ ! -e "$SCRATCH/stop" ]; do curl -sS --max-time 10 -w '\n' "http://$ip/" 2>&1; done | sort | uniq -c >"$SCRATCH/counts"
) &
asking=$!
switch_to() { kubectl patch service model -p '{"spec": {"selector": {"version": "'"$1"'"}}}'; }
only() { for _ in 1 2 3 4 5 6 7 8 9 10; do says "$1" || return 1; done; }
switch_to green
eventually 30 only green
switch_to blue
eventually 30 only blue
switch_to green
eventually 30 only green
kubectl delete deploy model-blue
eventually 30 only green
touch "$SCRATCH/stop"
wait $asking
equals "$(awk '{print $2}' "$SCRATCH/counts" | sort | tr '\n' ' ')" "blue green " "who answered"
