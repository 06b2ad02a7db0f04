#!/usr/bin/env bash
# InferenceServices of a real scikit-learn model: from a directory of the node and from a claim, by the v1 and the v2 protocol,
# on a runtime and in a container of one's own; Ready only when the model is loaded; two of them as a graph.
source "$(dirname "$0")/lib.sh"
source tests/live/serving/models.sh
up --images machine
iris_model "$SCRATCH/iris"
row='{"instances": [[6.8, 2.8, 4.8, 1.4], [5.1, 3.5, 1.4, 0.2]]}'
tensor='{"id": "42", "inputs": [{"name": "x", "shape": [2, 4], "datatype": "FP32", "data": [6.8, 2.8, 4.8, 1.4, 5.1, 3.5, 1.4, 0.2]}]}'
inferred='"outputs": [{"name": "output-0", "shape": [2], "datatype": "INT64", "data": [1, 0]}]'

# --- from a claim: filled by a pod, then served read-only
kubectl apply -f - <<YAML
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: models}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: filler}
spec:
  restartPolicy: Never
  containers:
    - {name: c, image: busybox, command: [sh, -c, "mkdir -p /claim/iris/v1 && cp /from/model.joblib /claim/iris/v1"], volumeMounts: [{name: claim, mountPath: /claim}, {name: from, mountPath: /from}]}
  volumes:
    - {name: claim, persistentVolumeClaim: {claimName: models}}
    - {name: from, hostPath: {path: $SCRATCH/iris}}
---
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: broken}
spec: {predictor: {sklearn: {storageUri: "file://$SCRATCH/nowhere"}}}
YAML
pod_has_ended() { pod_phase_is filler Succeeded; }
eventually 60 pod_has_ended
kubectl apply -f - <<YAML
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: iris-v2}
spec:
  predictor:
    model: {modelFormat: {name: sklearn}, protocolVersion: v2, storageUri: "pvc://models/iris/v1"}
---
# A runtime of one's own, with a server of one's own.
apiVersion: serving.kserve.io/v1alpha1
kind: ServingRuntime
metadata: {name: echo}
spec:
  supportedModelFormats: [{name: echo, autoSelect: true}]
  containers:
    - name: kserve-container
      image: python:3
      command: [/usr/bin/python3, -c]
      args:
        - |
          import http.server, json
          class H(http.server.BaseHTTPRequestHandler):
              def log_message(self, *a): pass
              def say(self, what):
                  text = json.dumps(what).encode()
                  self.send_response(200); self.send_header("Content-Length", str(len(text))); self.end_headers(); self.wfile.write(text)
              def do_GET(self): self.say({"name": "{{.Name}}", "ready": True})
              def do_POST(self):
                  body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                  self.say({"instances": [[6.8, 2.8, 4.8, 1.4]] * len(body["instances"]), "from": "{{.Name}}"})
          http.server.HTTPServer(("", 9000), H).serve_forever()
      ports: [{containerPort: 9000}]
---
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: before}
spec: {predictor: {model: {modelFormat: {name: echo}}}}
---
# One file, one container of one's own.
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: own}
spec:
  predictor:
    containers:
      - name: mine
        image: python:3
        command: [/usr/bin/python3, -m, http.server, "8000", --directory, /etc]
        ports: [{containerPort: 8000}]
---
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: iris}
spec: {predictor: {sklearn: {storageUri: "file://$SCRATCH/iris/model.joblib"}}}
---
apiVersion: serving.kserve.io/v1alpha1
kind: InferenceGraph
metadata: {name: chain}
spec:
  nodes:
    root:
      routerType: Sequence
      steps:
        - {serviceName: before, name: first, dependency: Hard}
        - {nodeName: choice, name: second, data: \$response, dependency: Hard}
    choice:
      routerType: Switch
      steps:
        - {serviceName: nobody, condition: 'from'}
---
apiVersion: serving.kserve.io/v1alpha1
kind: InferenceGraph
metadata: {name: elsewhere}
spec: {nodes: {root: {routerType: Sequence, steps: [{serviceUrl: "http://127.0.0.1:10250/pods"}]}}}
YAML
shows 'UrlRefused serviceUrl http://127.0.0.1:10250/pods: 127.0.0.1 is no InferenceService' kubectl get inferencegraph elsewhere \
  -o 'jsonpath={.status.conditions[0].reason} {.status.conditions[0].message}'
kubectl wait --for=condition=Ready isvc/iris-v2 isvc/iris isvc/before isvc/own --timeout=180s

equals "$(ask iris /v1/models/iris:predict "$row")" '{"predictions": [1, 0]}'
equals "$(ask iris-v2 /v2/health/ready)" '{"ready": true}'
equals "$(ask iris-v2 /v2/models/iris-v2/infer "$tensor")" '{"model_name": "iris-v2", "id": "42", '"$inferred}"
contains "$(ask iris-v2 /v2/models/iris-v2/infer '{"inputs": [{"name": "x", "shape": [3], "datatype": "FP32", "data": [1]}]}')" "cannot reshape"
contains "$(ask own /hostname)" own-predictor-
equals "$(jsonpath isvc/before .status.servingRuntimeName) $(jsonpath isvc/iris .status.clusterServingRuntimeName)" "echo kserve-sklearnserver"
equals "$(jsonpath isvc/iris .spec.predictor.model.modelFormat.name)" sklearn

# --- by its names, from a pod
kubectl apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  restartPolicy: Never
  containers:
    - name: c
      image: python:3
      command: [/usr/bin/python3, -c]
      args:
        - |
          import urllib.request
          for host in "iris", "iris.default", "iris.default.svc.cluster.local", "iris-predictor.default":
              print(host, urllib.request.urlopen(f"http://{host}/v1/models/iris", timeout=60).read().decode())
YAML
client_has_ended() { pod_phase_is client Succeeded; }
eventually 60 client_has_ended
equals "$(kubectl logs client | grep -c '"ready": true')" 4 "names that answered: $(kubectl logs client)"

# --- not Ready: the model is not there, the format is unknown, the scheme is not served; each says so
ready_says() { [[ "$(jsonpath "isvc/$1" '.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].message')" == "False "*"$2"* ]]; }
missing="hostPath type check failed: $SCRATCH/nowhere does not exist"
eventually 60 ready_says broken "$missing"
shows "$missing" kubectl get events --field-selector reason=FailedMount
[ ! -e "$SCRATCH/nowhere" ] || fail "the folder of a model was made"
mkdir "$SCRATCH/nowhere" # there, and empty
eventually 120 ready_says broken "the model cannot be loaded: RuntimeError: no model in /mnt/models"
eventually 60 ready_says broken "(/mnt/models is file://$SCRATCH/nowhere)"
serve() { printf 'apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: %s}\nspec: {predictor: {model: {modelFormat: {name: %s}, storageUri: "%s"}}}\n' "$@" | kubectl apply -f -; }
serve alien pickled file:///srv/x
eventually 30 ready_says alien "no runtime takes models of the format pickled"
serve astray sklearn pvc://models/iris/v9
eventually 60 ready_says astray 'subPath "iris/v9" does not exist, and its volume is read-only'
serve far sklearn s3://bucket/model
eventually 30 ready_says far "storageUri s3://bucket/model: only file://"
equals "$(jsonpath isvc/far '.status.modelStatus.transitionStatus} {.status.modelStatus.lastFailureInfo.reason')" "InvalidSpec InvalidPredictorSpec"

# --- the graph: first not ready, then both steps, the second with the answer of the first
graph_says() { [[ "$(jsonpath ig/chain '.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].message')" == "$1"* ]]; }
eventually 30 graph_says "False there is no InferenceService nobody"
kubectl patch ig chain --type json -p '[{"op": "replace", "path": "/spec/nodes/choice/steps/0/serviceName", "value": "iris"}]'
eventually 30 graph_says True
equals "$(ask chain / '{"instances": [[0], [0], [0]]}')" '{"predictions": [1, 1, 1]}'
kubectl patch ig chain --type json -p '[{"op": "replace", "path": "/spec/nodes/choice/steps/0/condition", "value": "instances.7"}]'
no_match() { [[ $(ask chain / '{"instances": [[0]]}') == *"none of the routes matched"* ]]; }
eventually 30 no_match

# --- deleted: nothing is left, and nobody answers for the name
kubectl delete isvc iris --timeout=60s
nothing_left() { [ -z "$(kubectl get deploy,svc,pods,endpointslices -l serving.kserve.io/inferenceservice=iris -o name)" ]; }
eventually 60 nothing_left
contains "$(curl -sS -H 'Host: iris.default' "http://$(cluster_ip iris-v2)/")" 'no InferenceService answers for the host'
