#!/usr/bin/env bash
# The registry of models: a Job trains a small model, writes it to a claim and registers it, with its ServiceAccount's token and the
# cluster's CA, by MLflow's REST API (Python's standard library; then MLflow's own client, if it is here); an InferenceService serves
# the source of the version that has the alias.
source "$(dirname "$0")/lib.sh"
source tests/live/serving/models.sh
up --images machine
kubectl create role registers --verb='*' --resource=registeredmodels.registry.muster.dev,modelversions.registry.muster.dev,runs.registry.muster.dev >/dev/null
kubectl create serviceaccount trainer >/dev/null
kubectl create rolebinding trainer --role=registers --serviceaccount=default:trainer >/dev/null
kubectl create configmap train --from-file=tests/live/registry/train.py >/dev/null
job() { # job NAME ACCOUNT
  kubectl apply -f - <<YAML
apiVersion: batch/v1
kind: Job
metadata: {name: $1}
spec:
  backoffLimit: 0
  template:
    spec:
      serviceAccountName: $2
      restartPolicy: Never
      containers:
        - name: train
          image: python:3
          command: [/usr/bin/python3, /code/train.py, /claim/iris/$1, pvc://models/iris/$1]
          volumeMounts: [{name: claim, mountPath: /claim}, {name: code, mountPath: /code}]
      volumes:
        - {name: claim, persistentVolumeClaim: {claimName: models}}
        - {name: code, configMap: {name: train}}
YAML
}
kubectl apply -f - <<YAML
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: models}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
YAML
job one trainer
kubectl wait --for=condition=Complete job/one --timeout=180s
equals "$(jsonpath modelversion/iris.1 '.spec.source} {.spec.user} {.status.state')" "pvc://models/iris/one system:serviceaccount:default:trainer READY"
run=$(jsonpath modelversion/iris.1 .spec.runID)
equals "$(jsonpath "runs.registry.muster.dev/$run" '.status.state} {.spec.params.max_iter')" "FINISHED 1000" "the run"
equals "$(jsonpath registeredmodel/iris '.status.latestVersion} {.spec.aliases.champion')" "1 1" "the model"
# Without a role it cannot: the job says why.
job two default
kubectl wait --for=condition=Failed job/two --timeout=180s
equals "$(jsonpath registeredmodel/iris .status.latestVersion)" 1 "versions after a job without permission"

# What the alias leads to is served.
kubectl apply -f - <<YAML
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: iris}
spec: {predictor: {sklearn: {storageUri: "$(jsonpath modelversion/iris.1 .spec.source)"}}}
YAML
isvc_ready iris
equals "$(ask iris /v1/models/iris:predict '{"instances": [[6.8, 2.8, 4.8, 1.4], [5.1, 3.5, 1.4, 0.2]]}')" '{"predictions": [1, 0]}'

contains "$(muster models list)" iris
contains "$(muster models describe iris)" "pvc://models/iris/one"
contains "$(kubectl get modelversions)" "pvc://models/iris/one"

# MLflow's own client, from here, with a token of the account.
client=$ROOT/build/tools/mlflow
if [ -e "$client/requirements.txt" ]; then
  MLFLOW_TRACKING_URI=https://127.0.0.1:6443/mlflow/default MLFLOW_TRACKING_TOKEN=$(kubectl create token trainer) \
    MLFLOW_TRACKING_SERVER_CERT_PATH=$DATA/pki/ca.crt PYTHONPATH=$client /usr/bin/python3 tests/live/registry/client.py
  equals "$(jsonpath registeredmodel/digits .status.latestVersion)" 2 "versions by MLflow's client"
else
  say "MLflow's own client is not here (tests/tools/fetch-mlflow)"
fi
muster models delete iris/1
muster models delete iris
gone() { ! kubectl get registeredmodel iris 2>/dev/null; }
gone || fail "the model is still there"
say "result: a job registered its model, and it was served"
