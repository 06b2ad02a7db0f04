# Objects from stdin to stdout: containers of Jobs find the packages that argument 1 names at /opt/mlflow. See mlflow.sh.
import sys
import yaml

documents = list(yaml.safe_load_all(sys.stdin))
for document in documents:
    if document["kind"] != "Job":
        continue
    pod = document["spec"]["template"]["spec"]
    pod.setdefault("volumes", []).append({"name": "mlflow", "hostPath": {"path": sys.argv[1]}})
    for container in pod["containers"]:
        container.setdefault("volumeMounts", []).append({"name": "mlflow", "mountPath": "/opt/mlflow", "readOnly": True})
        container.setdefault("env", []).append({"name": "PYTHONPATH", "value": "/opt/mlflow"})
yaml.safe_dump_all(documents, sys.stdout, sort_keys=False)
