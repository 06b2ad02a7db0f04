# Trains a small model and registers it with MLflow's client. Where that goes is in the environment (docs/registry.md).
import os

import joblib
import mlflow
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

with open("/var/run/secrets/kubernetes.io/serviceaccount/token") as token:
    os.environ["MLFLOW_TRACKING_TOKEN"] = token.read()
client = mlflow.MlflowClient()
# Of the claim "models", which is mounted at /claim. Files of the runs are put there by MLflow's client.
if client.get_experiment_by_name("irises") is None:
    client.create_experiment("irises", artifact_location="file:///claim/runs")
mlflow.set_experiment("irises")

with mlflow.start_run(run_name="logistic") as run:
    mlflow.log_params({"max_iter": 1000, "data": "iris"})
    rows, kinds = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(rows, kinds)
    mlflow.log_metric("accuracy", model.score(rows, kinds))
    joblib.dump(model, "/tmp/model.joblib")
    mlflow.log_artifact("/tmp/model.joblib", "model")

try:
    client.create_registered_model("iris", description="Tells irises apart.")
except mlflow.exceptions.MlflowException as error:
    if error.error_code != "RESOURCE_ALREADY_EXISTS":
        raise
source = f"pvc://models/runs/{run.info.run_id}/artifacts/model"
version = client.create_model_version("iris", source, run_id=run.info.run_id)
client.set_registered_model_alias("iris", "champion", version.version)
