#!/usr/bin/env bash
# Part of tests/live/user.sh, as an ordinary user: quickstart, and two PyTorchJobs at once on the same port.
source "$(dirname "$0")/../lib.sh"
[ "$(id -u)" != 0 ] || fail "this test is for an ordinary user"

start=$SECONDS
MUSTER_DATA_DIR=$DATA ./quickstart >"$SCRATCH/quickstart.out" || fail "quickstart: $(cat "$SCRATCH/quickstart.out")"
took=$((SECONDS - start))
contains "$(cat "$SCRATCH/quickstart.out")" "final test accuracy 0.9" "training log"
contains "$(cat "$SCRATCH/quickstart.out")" "What you could try next" "last words"
equals "$(stat -c %a "$DATA" "$DATA/kubeconfig" | tr '\n' ' ')" "700 600 " "modes"

# The master of each job listens on its port, and goes on when both have been reached by their worker.
mkdir -m 777 "$SCRATCH/gate"
job() {
  cat <<YAML
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: $1}
spec:
  runPolicy: {cleanPodPolicy: None}
  pytorchReplicaSpecs:
    Master: &replica
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: pytorch
              image: none
              command: ["python3", "/script/rendezvous.py"]
              volumeMounts: [{name: script, mountPath: /script}, {name: gate, mountPath: /gate}]
          volumes: [{name: script, configMap: {name: rendezvous}}, {name: gate, hostPath: {path: $SCRATCH/gate}}]
    Worker: *replica
YAML
}
cat >"$SCRATCH/rendezvous.py" <<'PYTHON'
import os, socket, time
port = int(os.environ["MASTER_PORT"])
if os.environ["RANK"] == "0":
    server = socket.create_server(("", port))
    server.accept()[0].sendall(b"hello from " + os.uname().nodename.encode())
    print("served port", port, flush=True)
    open("/gate/" + os.uname().nodename, "w").close()
    while len(os.listdir("/gate")) < 2: time.sleep(0.1)
else:
    while True:
        try: client = socket.create_connection((os.environ["MASTER_ADDR"], port)); break
        except ConnectionRefusedError: time.sleep(0.1)
    print(client.recv(100).decode(), flush=True)
PYTHON
kubectl create configmap rendezvous --from-file="$SCRATCH/rendezvous.py" >/dev/null
for name in one two; do job $name | kubectl apply -f - >/dev/null; done
for name in one two; do
  kubectl wait --for=condition=Succeeded "pytorchjob/$name" --timeout=60s >/dev/null ||
    fail "job $name: $(kubectl describe pods)"
  equals "$(kubectl logs "$name-master-0")" "served port 23456"
  equals "$(kubectl logs "$name-worker-0")" "hello from $name-master-0"
done

"$MUSTER" down --purge --data-dir "$DATA"
[ ! -e "$DATA" ] || fail "$DATA is still there: $(find "$DATA")"
say "result: an ordinary user: quickstart $took s, two jobs at once on port 23456"
