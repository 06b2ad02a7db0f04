"""Makes a ConfigMap and a Deployment of each Page, and says in its status how they do."""
import datetime
import os
import time

import kubernetes
from kubernetes.client.exceptions import ApiException

GROUP = ("demo.example.com", "v1")
kubernetes.config.load_incluster_config()
core = kubernetes.client.CoreV1Api()
apps = kubernetes.client.AppsV1Api()
custom = kubernetes.client.CustomObjectsApi()


def now():
    return datetime.datetime.utcnow().strftime("%Y-%m-%dT%H:%M:%SZ")


def bring(create, patch, namespace, body):
    """Creates what is missing, changes what is there."""
    try:
        return create(namespace, body)
    except ApiException as error:
        if error.status != 409:
            raise
        return patch(body["metadata"]["name"], namespace, body)


def metadata(page):
    owner = {"apiVersion": "/".join(GROUP), "kind": "Page", "name": page["metadata"]["name"], "uid": page["metadata"]["uid"],
             "controller": True, "blockOwnerDeletion": True}
    return {"name": "page-" + page["metadata"]["name"], "labels": {"page": page["metadata"]["name"]}, "ownerReferences": [owner]}


def deployment(page):
    labels = {"page": page["metadata"]["name"]}
    container = {"name": "main", "image": "none", "command": ["sleep", "100000"],
                 "env": [{"name": "TEXT", "value": page["spec"]["text"]}]}
    return {"metadata": metadata(page),
            "spec": {"replicas": page["spec"]["replicas"], "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}}}


def reconcile(page):
    namespace, name = page["metadata"]["namespace"], page["metadata"]["name"]
    if page["metadata"].get("deletionTimestamp"):
        return
    bring(core.create_namespaced_config_map, core.patch_namespaced_config_map, namespace,
          {"metadata": metadata(page), "data": {"text": page["spec"]["text"]}})
    made = bring(apps.create_namespaced_deployment, apps.patch_namespaced_deployment, namespace, deployment(page))
    available = made.status.available_replicas or 0
    ready = available == page["spec"]["replicas"]
    old = page.get("status", {})
    condition = {"type": "Ready", "status": str(ready), "reason": "Available" if ready else "Waiting",
                 "message": f"{available} of {page['spec']['replicas']} pods are available"}
    before = {c["type"]: c for c in old.get("conditions", [])}.get("Ready", {})
    changed = before.get("status") != condition["status"]
    condition["lastTransitionTime"] = now() if changed else before["lastTransitionTime"]
    status = {"observedGeneration": page["metadata"]["generation"], "replicas": available, "selector": "page=" + name,
              "conditions": [condition]}
    if status == old:
        return
    custom.patch_namespaced_custom_object_status(*GROUP, namespace, "pages", name, {"status": status})
    if changed and ready:
        core.create_namespaced_event(namespace, {
            "metadata": {"generateName": name + "-"}, "type": "Normal", "reason": "Ready", "message": condition["message"],
            "involvedObject": {"apiVersion": "/".join(GROUP), "kind": "Page", "namespace": namespace, "name": name,
                               "uid": page["metadata"]["uid"]},
            "source": {"component": "page-operator"}, "firstTimestamp": now(), "lastTimestamp": now(), "count": 1})


def main():
    print("level", os.environ["LOG_LEVEL"], "as", os.environ["POD_NAME"], flush=True)
    while True:
        try:
            pages = custom.list_cluster_custom_object(*GROUP, "pages")
            for page in pages["items"]:
                reconcile(page)
            # Pages that change, and what is made of them by looking again.
            for event in kubernetes.watch.Watch().stream(custom.list_cluster_custom_object, *GROUP, "pages",
                                                         resource_version=pages["metadata"]["resourceVersion"],
                                                         timeout_seconds=1):
                if event["type"] in ("ADDED", "MODIFIED"):
                    reconcile(event["object"])
        except ApiException as error:
            print("again, after", error.status, error.reason, flush=True)
            time.sleep(0.5)


main()
