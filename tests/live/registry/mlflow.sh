# Shared by the tests of the registry of models. Source it after lib.sh. Images with MLflow are not here: pods have this machine's root, and
# MLflow's client, as tests/tools/fetch-mlflow made it, at /opt/mlflow.
MLFLOW=$ROOT/build/tools/mlflow
[ -e "$MLFLOW/requirements.txt" ] || skip "MLflow's client is not here (tests/tools/fetch-mlflow)"
# It asks nobody else, and gives up at once when it is refused.
export MLFLOW_DISABLE_TELEMETRY=true MLFLOW_HTTP_REQUEST_MAX_RETRIES=2

# with_mlflow: the objects on stdin, of which each container of each Job finds MLflow's client.
with_mlflow() { PYTHONPATH=$MLFLOW /usr/bin/python3 tests/live/registry/with_mlflow.py "$MLFLOW"; }
# as_account NAME COMMAND...: with this ServiceAccount's token, which stays in TOKEN.
as_account() {
  TOKEN=$(kubectl create token "$1")
  MLFLOW_TRACKING_TOKEN=$TOKEN MLFLOW_TRACKING_URI=https://127.0.0.1:6443/mlflow/default \
    MLFLOW_TRACKING_SERVER_CERT_PATH=$DATA/pki/ca.crt PYTHONPATH=$MLFLOW "${@:2}"
}
