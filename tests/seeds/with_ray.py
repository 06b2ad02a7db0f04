# Objects from stdin to stdout: pods of Ray find the virtual environment that argument 1 names at /opt/ray. See ray.sh.
import sys
import yaml


def see(container):
    env = container.setdefault("env", [])
    env.append({"name": "PATH", "value": "/opt/ray/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"})
    container.setdefault("volumeMounts", []).append({"name": "ray", "mountPath": "/opt/ray", "readOnly": True})


def walk(node):
    if isinstance(node, list):
        for item in node:
            walk(item)
    if not isinstance(node, dict):
        return
    if "containers" in node:
        for container in node["containers"]:
            see(container)
        node.setdefault("volumes", []).append({"name": "ray", "hostPath": {"path": sys.argv[1]}})
        return
    if node.get("enableInTreeAutoscaling"):
        see(node.setdefault("autoscalerOptions", {}))
    for group in [node.get("headGroupSpec")] + (node.get("workerGroupSpecs") or []):
        # What an autoscaler finds of groups that say nothing is the server's part.
        if group and not (node.get("enableInTreeAutoscaling") and "rayStartParams" not in group):
            group.setdefault("rayStartParams", {}).setdefault("object-store-memory", "80000000")
    for value in node.values():
        walk(value)


documents = list(yaml.safe_load_all(sys.stdin))
walk(documents)
yaml.safe_dump_all(documents, sys.stdout, sort_keys=False)
