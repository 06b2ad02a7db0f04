#!/usr/bin/env bash
# The registry of models, as MLflow's own Python client sees it: experiments, runs, models and versions, with the token of an account
# that may; refused in its words to one that may not. The same objects through kubectl and muster. (In a pod:
# tests/seeds/gpu-orchestration/19-model-registry.sh.)
source "$(dirname "$0")/lib.sh"
source tests/live/registry/mlflow.sh
up
for account in trainer=edit reader=view; do
  kubectl create serviceaccount "${account%=*}" >/dev/null
  kubectl create rolebinding "${account%=*}" --clusterrole="${account#*=}" --serviceaccount="default:${account%=*}" >/dev/null
done
mkdir "$SCRATCH/runs"
as_account trainer /usr/bin/python3 tests/live/registry/client.py "$SCRATCH/runs"
equals "$(jsonpath registeredmodel/digits '.status.latestVersion} {.spec.aliases.champion')" "3 2" "the model"
equals "$(jsonpath modelversion/digits.2 '.spec.source} {.spec.user} {.spec.stage')" \
  "pvc://models/2 system:serviceaccount:default:trainer Production" "the version"
contains "$(kubectl get experiments.registry.muster.dev)" "Digits of MNIST"
contains "$(kubectl get runs.registry.muster.dev)" FINISHED
as_account reader /usr/bin/python3 tests/live/registry/stranger.py
equals "$(jsonpath registeredmodel/digits '.status.latestVersion} {.spec.aliases.champion')" "3 2" "the model after the stranger"
if grep -qF "${TOKEN:?}" "$DATA/logs/muster.log"; then fail "a token is in muster.log"; fi
nobody=$(curl -s --cacert "$DATA/pki/ca.crt" -H "Authorization: Bearer stolen" \
  https://127.0.0.1:6443/mlflow/default/api/2.0/mlflow/experiments/search)
contains "$nobody" '"error_code":"UNAUTHENTICATED"' "the answer to a foreign token"

contains "$(muster models list)" "digits"
contains "$(muster models describe digits)" "loss=0.25"
muster models delete digits/2
equals "$(jsonpath registeredmodel/digits .spec.aliases.champion)" "" "the alias of a version that is gone"
muster models delete digits
kubectl delete experiments.registry.muster.dev --all >/dev/null
none_left() { equals "$(kubectl get modelversions,runs.registry.muster.dev -o name)" ""; }
eventually 60 none_left # versions go with their model, runs with their experiment
say "result: MLflow's client registered three versions of a model"
