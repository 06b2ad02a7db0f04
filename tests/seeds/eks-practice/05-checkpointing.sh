#!/usr/bin/env bash
# A training job that loses its pod in the middle goes on from its checkpoint, and ends with what it would have learnt without.
source "$(dirname "$0")/../lib.sh"
up_machine
sed 's/time.sleep(1)/time.sleep(0.1)/' "$EXAMPLE" | kubectl apply -f -
pod() { kubectl get pods -l job-name=checkpointed --field-selector status.phase!=Failed -o 'jsonpath={.items[0].metadata.name}'; }
epoch() { kubectl exec "$(pod)" -- cat /checkpoints/latest.json | jq .epoch; }
trained() { [ "$(epoch)" -ge "$1" ]; }
eventually 20 trained 3
first=$(pod)
reached=$(epoch)
kubectl delete pod "$first" --wait >/dev/null
eventually 30 kubectl wait --for=condition=Complete job/checkpointed --timeout=30s
[ "$(pod)" != "$first" ] || fail "the pod is the one that was deleted"
printed=$(kubectl logs "$(pod)")
began=$(sed -n 's/starts at epoch //p' <<<"$printed")
[ "$began" -ge "$reached" ] && [ "$began" -lt 60 ] || fail "began at $began, and the checkpoint was of epoch $reached at least"
contains "$printed" "epoch 60 weight 2.99" "the end of the training"
say "result: interrupted after epoch $reached, resumed at $began"
