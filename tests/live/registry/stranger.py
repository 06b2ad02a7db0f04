# What the client is told of an account that may read, and not write.
import mlflow
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

client = MlflowClient()
assert [each.name for each in client.search_registered_models()] == ["digits"]
for write in (
    lambda: client.create_model_version("digits", "pvc://models/4"),
    lambda: client.set_registered_model_alias("digits", "champion", "1"),
    lambda: client.create_run("0"),
    lambda: mlflow.set_experiment("mine"),
):
    try:
        write()
    except MlflowException as error:
        assert error.error_code == "PERMISSION_DENIED" and "system:serviceaccount:default:reader" in str(error), error
    else:
        raise AssertionError("was not refused")
