#!/usr/bin/env bash
# Canary: a tenth of the requests goes to the new model once it is ready, none before; rolled back at once, promoted at last,
# and no request is lost on the way.
source "$(dirname "$0")/lib.sh"
source tests/live/serving/models.sh
up --images machine
for number in 1 2 3; do constant_model "$SCRATCH/v$number" $number; done
kubectl apply -f - <<YAML
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: my-model}
spec:
  predictor:
    model: {modelFormat: {name: sklearn}, storageUri: file://$SCRATCH/v1}
YAML
isvc_ready my-model
url=http://$(cluster_ip my-model)/v1/models/my-model:predict
answers() { "$PYTHON" tests/live/serving/load.py "$url" "$@"; }
traffic_is() { [ "$(kubectl get isvc my-model -o 'jsonpath={range .status.components.predictor.traffic[*]}{.revisionName}={.percent} {end}')" = "$1" ]; }
serve() { # serve MODEL PERCENT (null: all)
  kubectl patch isvc my-model --type merge -p '{"spec": {"predictor": {"canaryTrafficPercent": '"$2"', "model": {"storageUri": "file://'"$1"'"}}}}'
}
equals "$(answers 20)" '[1] 20'

# Asked all the time from here on.
answers until "$SCRATCH/stop" 2 >"$SCRATCH/counts" &
asking=$!

serve "$SCRATCH/v2" 10
eventually 60 traffic_is 'my-model-predictor-00002=10 my-model-predictor-00001=90 '
contains "$(kubectl get isvc my-model)" "True    90     10"
# Weighted round robin: exactly a tenth, but for who else asks meanwhile.
counted=$(answers 400 4)
[[ $counted =~ \[1\]\ ([0-9]+) ]] && old=${BASH_REMATCH[1]} || fail "no answer of the old model: $counted"
[[ $counted =~ \[2\]\ ([0-9]+) ]] && new=${BASH_REMATCH[1]} || fail "no answer of the new model: $counted"
equals $((old + new)) 400 "answers"
{ [ "$new" -ge 20 ] && [ "$new" -le 60 ]; } || fail "$new of 400 requests went to the canary, expected about 40"

# Back: nobody gets the new one, without a pod having to start.
serve "$SCRATCH/v2" 0
eventually 30 traffic_is 'my-model-predictor-00002=0 my-model-predictor-00001=100 '
only_says() { [ "$(answers 20)" = "[$1] 20" ]; }
eventually 30 only_says 1

# A model that cannot be loaded gets nothing, says why, and what is served goes on.
mkdir "$SCRATCH/broken" && echo no model >"$SCRATCH/broken/model.joblib"
serve "$SCRATCH/broken" 50
why() { jsonpath isvc/my-model '.status.modelStatus.transitionStatus} {.status.modelStatus.lastFailureInfo.reason} {.status.modelStatus.lastFailureInfo.message'; }
has_failed() { [[ $(why) == "BlockedByFailedLoad ModelLoadFailed the model cannot be loaded: "* ]]; }
eventually 60 has_failed
equals "$(answers 20)" '[1] 20'

# Promoted: the third, first half of it, then all.
serve "$SCRATCH/v3" 50
eventually 60 traffic_is 'my-model-predictor-00004=50 my-model-predictor-00001=50 '
serve "$SCRATCH/v3" null
eventually 90 traffic_is 'my-model-predictor-00004=100 '
eventually 60 only_says 3
no_canary() { [ -z "$(kubectl get deploy,svc my-model-predictor-canary --ignore-not-found -o name)" ]; }
eventually 30 no_canary
equals "$(jsonpath isvc/my-model .status.components.predictor.previousRolledoutRevision)" my-model-predictor-00001

touch "$SCRATCH/stop"
wait $asking
grep failed "$SCRATCH/counts" && fail "requests were lost"
say "answers on the way: $(tr '\n' ' ' <"$SCRATCH/counts")"
