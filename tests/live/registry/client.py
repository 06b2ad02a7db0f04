# What a training script does with MLflow's own client; where it goes is in the environment.
import math
import sys

import mlflow
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient


def refused(code, what, *arguments, **named):
    try:
        what(*arguments, **named)
    except MlflowException as error:
        assert error.error_code == code, (error.error_code, error)
        return str(error)
    raise AssertionError(f"{what} was not refused")


folder = sys.argv[1]
client = MlflowClient()
mlflow.set_experiment("Digits of MNIST")  # makes it
again = mlflow.set_experiment("Digits of MNIST")  # finds it
assert again.name == "Digits of MNIST" and again.lifecycle_stage == "active", again
client.set_experiment_tag(again.experiment_id, "team", "vision")
assert client.get_experiment(again.experiment_id).tags == {"team": "vision"}
assert {each.name for each in mlflow.search_experiments()} == {"Default", "Digits of MNIST"}

with mlflow.start_run(run_name="digits") as run:
    mlflow.log_params({"rate": 0.1, "epochs": 3})
    mlflow.log_metric("loss", 0.5, step=1)
    mlflow.log_metrics({"loss": 0.25, "accuracy": 0.9, "worst": math.inf}, step=2)
    mlflow.log_metric("undefined", math.nan)
    mlflow.set_tags({"data": "mnist", "my key": "x"})
    with mlflow.start_run(run_name="below", nested=True) as below:
        mlflow.log_metric("loss", 0.75)
data = client.get_run(run.info.run_id)
assert data.info.status == "FINISHED" and data.info.experiment_id == again.experiment_id, data.info
assert math.isnan(data.data.metrics.pop("undefined")), data.data.metrics
assert data.data.metrics == {"loss": 0.25, "accuracy": 0.9, "worst": math.inf}, data.data.metrics
assert data.data.params == {"rate": "0.1", "epochs": "3"}, data.data.params
refused("INVALID_PARAMETER_VALUE", client.log_param, run.info.run_id, "rate", 0.2)
refused("RESOURCE_DOES_NOT_EXIST", client.get_run, "f" * 32)


def found(**search):
    return [each.info.run_id for each in mlflow.search_runs(output_format="list", **search)]


both = [below.info.run_id, run.info.run_id]
assert found() == both, found()
assert found(order_by=["attribute.start_time ASC"]) == both[::-1]
assert found(order_by=["metrics.`loss` DESC", "attributes.start_time DESC"]) == both
assert found(filter_string="metrics.loss < 0.3 and tags.`my key` = 'x'") == [run.info.run_id]
assert found(filter_string="attributes.run_name LIKE 'dig%' and params.rate = '0.1'") == [run.info.run_id]
page = client.search_runs([again.experiment_id], max_results=1)
assert len(page) == 1 and page.token
rest = client.search_runs([again.experiment_id], max_results=1, page_token=page.token)
assert [each.info.run_id for each in page + rest] == both and not rest.token
client.delete_run(below.info.run_id)
assert found() == [run.info.run_id]
assert "active" in refused("INVALID_PARAMETER_VALUE", client.log_metric, below.info.run_id, "loss", 1)
client.restore_run(below.info.run_id)
client.log_metric(below.info.run_id, "loss", 1)

# Files go where the experiment says; where it does not, the client refuses.
with mlflow.start_run(run_id=run.info.run_id):
    try:
        mlflow.log_text("weights", "weights.txt")
        raise AssertionError("it went somewhere")
    except MlflowException as error:
        assert "the-experiment-has-no-artifact-location" in str(error), error
kept = client.create_experiment("kept", artifact_location=f"file://{folder}")
with mlflow.start_run(experiment_id=kept) as with_files:
    mlflow.log_text("weights", "model/weights.txt")
assert [each.path for each in client.list_artifacts(with_files.info.run_id, "model")] == ["model/weights.txt"]
with open(f"{folder}/{with_files.info.run_id}/artifacts/model/weights.txt") as weights:
    assert weights.read() == "weights"

client.create_registered_model("digits", tags={"team": "vision"}, description="Digits of MNIST")
for source in "pvc://models/1", "pvc://models/2":
    version = client.create_model_version("digits", source, run_id=run.info.run_id)
assert (str(version.version), version.status) == ("2", "READY"), version
client.set_registered_model_alias("digits", "champion", version.version)
assert client.get_model_version_by_alias("digits", "champion").source == "pvc://models/2"
client.set_model_version_tag("digits", "1", "checked", "yes")
client.update_model_version("digits", "1", description="the first")
assert client.get_model_version("digits", "1").tags == {"checked": "yes"}
client.transition_model_version_stage("digits", "2", "Production", archive_existing_versions=True)
assert [str(each.version) for each in client.get_latest_versions("digits", stages=["Production"])] == ["2"]
assert [str(each.version) for each in client.search_model_versions("name = 'digits'")] == ["2", "1"]
third = mlflow.register_model(f"file://{folder}/model", "digits")
assert str(third.version) == "3" and third.source == f"file://{folder}/model", third
assert [each.name for each in client.search_registered_models("name LIKE 'dig%'", order_by=["name ASC"])] == ["digits"]
assert client.get_registered_model("digits").aliases == {"champion": "2"}
refused("RESOURCE_ALREADY_EXISTS", client.create_registered_model, "digits")
refused("RESOURCE_DOES_NOT_EXIST", client.get_registered_model, "letters")
refused("RESOURCE_DOES_NOT_EXIST", client.get_model_version_by_alias, "digits", "loser")
assert "docs/registry.md" in refused("ENDPOINT_NOT_FOUND", client.rename_registered_model, "digits", "numbers")
