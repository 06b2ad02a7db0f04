#!/usr/bin/env bash
# "Route small percentage of inference traffic to new model. Monitor metrics. Gradually increase percentage."
source "$(dirname "$0")/../lib.sh"
source tests/live/serving/models.sh
up_machine
constant_model "$SCRATCH/recommender-v1" 1
constant_model "$SCRATCH/recommender-v2" 2
model() { # model VERSION PERCENT: the example with another model and percentage; without a percentage it is the only one
  local percent='s/canaryTrafficPercent: 10/canaryTrafficPercent: '"${2-}/"
  [ $# = 2 ] || percent='/canaryTrafficPercent/d'
  sed -e "s|/srv/models/recommender-v2|$SCRATCH/recommender-$1|" -e "$percent" "$EXAMPLE" | kubectl apply -f -
}
model v1
isvc_ready recommender
share() { jsonpath isvc/recommender '.status.components.predictor.traffic[?(@.latestRevision==true)].percent'; }
gets() { [ "$(share)" = "$1" ]; }
url=http://$(cluster_ip recommender)/v1/models/recommender:predict
# Of a hundred requests the new model answers exactly so many.
answers() { equals "$("$PYTHON" tests/live/serving/load.py "$url" 100 4 | tr '\n' ' ')" "$1" "answers of 100"; }
for percent in 10 30; do
  model v2 $percent
  eventually 60 gets $percent
  answers "[1] $((100 - percent)) [2] $percent "
done
# "Monitor metrics": what each of them got and could not answer.
metrics=$(kubectl get --raw /metrics)
contains "$metrics" 'muster_gateway_requests_total{namespace="default",deployment="recommender-predictor-canary"} 40'
contains "$metrics" 'muster_gateway_failures_total{namespace="default",deployment="recommender-predictor-canary"} 0'
model v2
promoted() { [ "$(jsonpath isvc/recommender .status.components.predictor.latestRolledoutRevision)" = recommender-predictor-00002 ]; }
eventually 60 promoted
all_new() { [ "$("$PYTHON" tests/live/serving/load.py "$url" 20 4)" = "[2] 20" ]; }
eventually 30 all_new
