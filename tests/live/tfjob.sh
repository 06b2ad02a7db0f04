#!/usr/bin/env bash
# Issue 7: a TFJob's ranks find each other by TF_CONFIG alone; the chief's end is the job's, and the parameter server,
# which never ends, is removed. Then a JAXJob by its coordinator. The programs speak TCP: no TensorFlow is needed.
source "$(dirname "$0")/lib.sh"
up
SHARED=$SCRATCH/shared
mkdir -p "$SHARED" && chmod 777 "$SHARED"
# The parameter server adds up what it is sent; workers send their number; the chief asks until all have, and stays
# until it may end: with its end all that still run are removed.
cat >"$SHARED/rank.py" <<'PY'
import json
import os
import socket
import time

config = json.loads(os.environ["TF_CONFIG"])
task, cluster = config["task"], config["cluster"]
assert config["environment"] == "cloud" and "evaluator" not in cluster
if task["type"] in cluster:
    name, port = cluster[task["type"]][task["index"]].rsplit(":", 1)
    assert name == f"{os.uname().nodename}.default.svc", name


def ask(line):
    host, port = cluster["ps"][0].rsplit(":", 1)
    while True:
        try:
            with socket.create_connection((host, int(port)), 5) as link:
                link.sendall(line.encode() + b"\n")
                return link.makefile().readline()
        except OSError:
            time.sleep(0.1)


if task["type"] == "ps":
    total = 0
    server = socket.create_server(("", int(port)))
    while True:
        link, _ = server.accept()
        total += int(link.makefile().readline())
        link.sendall(f"{total}\n".encode())
        link.close()
elif task["type"] == "worker":
    ask(str(task["index"] + 1))
    print("sent", task["index"] + 1, flush=True)
elif task["type"] == "chief":
    wanted = sum(range(1, len(cluster["worker"]) + 1))
    while (total := int(ask("0"))) != wanted or not os.path.exists("/shared/end"):
        time.sleep(0.1)
    print("total", total, flush=True)
else:
    print("looks at", sorted(cluster), flush=True)
PY
role() { # role NAME REPLICAS
  cat <<YAML
    $1:
      replicas: $2
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
            - name: tensorflow
              image: none
              command: [python3, /shared/rank.py]
              volumeMounts: [{name: shared, mountPath: /shared}]
          volumes: [{name: shared, hostPath: {path: $SHARED, type: Directory}}]
YAML
}
{
  cat <<'YAML'
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: sum}
spec:
  runPolicy: {cleanPodPolicy: Running}
  tfReplicaSpecs:
YAML
  role chief 1; role PS 1; role Worker 3; role Evaluator 1
} | kubectl apply -f -
for pod in sum-worker-0 sum-worker-1 sum-worker-2 sum-evaluator-0; do
  kubectl wait --for=create "pod/$pod" --timeout=30s
  kubectl wait --for=jsonpath='{.status.phase}'=Succeeded "pod/$pod" --timeout=60s
done
touch "$SHARED/end"
kubectl wait --for=condition=Succeeded tfjob/sum --timeout=60s
equals "$(kubectl logs sum-chief-0)" "total 6" "the chief"
equals "$(kubectl logs sum-evaluator-0)" "looks at ['chief', 'ps', 'worker']" "the evaluator"
kubectl wait --for=delete pod/sum-ps-0 service/sum-ps-0 --timeout=30s
contains "$(kubectl get tfjobs --no-headers)" "Succeeded" "printer column"
shows "PS" "$MUSTER" describe tfjob sum
contains "$("$MUSTER" explain job sum)" "TFJob sum succeeded" "muster explain job"
equals "$(jsonpath tfjob/sum .status.replicaStatuses.Worker.succeeded)" 3 "workers that succeeded"

# Rank 0 listens where the others call, and ends after them, as JAX does: its name holds until then.
cat >"$SHARED/jax.py" <<'PY'
import os
import socket
import time

rank, ranks = int(os.environ["PROCESS_ID"]), int(os.environ["NUM_PROCESSES"])
host, port = os.environ["COORDINATOR_ADDRESS"], int(os.environ["COORDINATOR_PORT"])
if rank == 0:
    server = socket.create_server(("", port))
    for _ in range(1, ranks):
        server.accept()[0].close()
while rank > 0:
    try:
        socket.create_connection((host, port), 5).close()
        break
    except OSError:
        time.sleep(0.1)
print(f"{rank} of {ranks} at {host}:{port}", flush=True)
PY
kubectl apply -f - <<YAML
apiVersion: kubeflow.org/v1
kind: JAXJob
metadata: {name: jx}
spec:
  jaxReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: jax
              image: none
              command: [python3, /shared/jax.py]
              volumeMounts: [{name: shared, mountPath: /shared}]
          volumes: [{name: shared, hostPath: {path: $SHARED, type: Directory}}]
YAML
kubectl wait --for=condition=Succeeded jaxjob/jx --timeout=60s
equals "$(kubectl logs jx-worker-1)" "1 of 2 at jx-worker-0:6666" "rank 1"
say "result: a TFJob of chief, parameter server, workers and evaluator met by TF_CONFIG; a JAXJob at its coordinator"
