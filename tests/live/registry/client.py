# What a training script does with MLflow's own client; where it goes is in the environment.
import mlflow
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

client = MlflowClient()
with mlflow.start_run(run_name="digits") as run:
    mlflow.log_params({"rate": 0.1, "epochs": 3})
    mlflow.log_metric("loss", 0.5, step=1)
    mlflow.log_metrics({"loss": 0.25, "accuracy": 0.9}, step=2)
    mlflow.set_tag("data", "mnist")
data = client.get_run(run.info.run_id)
assert data.info.status == "FINISHED", data.info
assert data.data.metrics == {"loss": 0.25, "accuracy": 0.9}, data.data.metrics
assert data.data.params == {"rate": "0.1", "epochs": "3"}, data.data.params
assert [each.info.run_id for each in mlflow.search_runs(filter_string="metrics.loss < 0.3", output_format="list")] == [run.info.run_id]

client.create_registered_model("digits", tags={"team": "vision"}, description="Digits of MNIST")
for source in "pvc://models/1", "pvc://models/2":
    version = client.create_model_version("digits", source, run_id=run.info.run_id)
assert (version.version, version.status) in [("2", "READY"), (2, "READY")], version
client.set_registered_model_alias("digits", "champion", version.version)
assert client.get_model_version_by_alias("digits", "champion").source == "pvc://models/2"
client.set_model_version_tag("digits", "1", "checked", "yes")
client.update_model_version("digits", "1", description="the first")
assert client.get_model_version("digits", "1").tags == {"checked": "yes"}
client.transition_model_version_stage("digits", "2", "Production", archive_existing_versions=True)
assert [each.version for each in client.get_latest_versions("digits", stages=["Production"])] in (["2"], [2])
assert len(client.search_model_versions("name = 'digits'")) == 2
assert [each.name for each in client.search_registered_models("name LIKE 'dig%'")] == ["digits"]
try:
    client.create_registered_model("digits")
    raise AssertionError("created twice")
except MlflowException as error:
    assert error.error_code == "RESOURCE_ALREADY_EXISTS", error
