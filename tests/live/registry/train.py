# Trains a small model, writes it to DIRECTORY and registers it as lying at SOURCE, as any HTTP client may.
import json
import os
import ssl
import sys
import urllib.request

import joblib
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

directory, source = sys.argv[1:]
account = "/var/run/secrets/kubernetes.io/serviceaccount"
read = lambda name: open(f"{account}/{name}").read()
server = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
base = f"{server}/mlflow/{read('namespace')}/api/2.0/mlflow/"
context = ssl.create_default_context(cafile=f"{account}/ca.crt")


def ask(path, **body):
    request = urllib.request.Request(base + path, json.dumps(body).encode(), {"Authorization": "Bearer " + read("token")})
    return json.load(urllib.request.urlopen(request, context=context, timeout=60))


run = ask("runs/create", experiment_id="0", run_name="iris")["run"]["info"]["run_id"]
ask("runs/log-parameter", run_id=run, key="max_iter", value="1000")
rows, kinds = load_iris(return_X_y=True)
model = LogisticRegression(max_iter=1000).fit(rows, kinds)
os.makedirs(directory, exist_ok=True)
joblib.dump(model, f"{directory}/model.joblib")
ask("runs/log-batch", run_id=run, metrics=[{"key": "accuracy", "value": model.score(rows, kinds), "timestamp": 0, "step": 0}])
ask("runs/update", run_id=run, status="FINISHED")
ask("registered-models/create", name="iris", description="Tells irises apart.")
version = ask("model-versions/create", name="iris", source=source, run_id=run)["model_version"]["version"]
ask("registered-models/alias", name="iris", alias="champion", version=version)
