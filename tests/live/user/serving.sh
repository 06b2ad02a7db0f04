#!/usr/bin/env bash
# A part of tests/live/user.sh: an InferenceService, through the gateway inside the user's own network, from asleep.
source "$(dirname "$0")/../lib.sh"
source tests/live/serving/models.sh
up --images machine
constant_model "$SCRATCH/seven" 7
kubectl apply -f - <<YAML
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: seven}
spec:
  predictor:
    minReplicas: 0
    model: {modelFormat: {name: sklearn}, storageUri: file://$SCRATCH/seven}
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  restartPolicy: Never
  containers:
    - name: c
      image: none
      command: [/usr/bin/python3, -c]
      args:
        - |
          import time, urllib.request
          for attempt in range(120):  # its Service may come after this pod
              try:
                  print(urllib.request.urlopen("http://seven/v1/models/seven:predict", b'{"instances": [[0]]}', timeout=90).read().decode())
                  break
              except OSError as error:
                  print(error)
                  time.sleep(1)
YAML
isvc_ready seven
client_has_ended() { pod_phase_is client Succeeded; }
eventually 90 client_has_ended
contains "$(kubectl logs client)" '{"predictions": [7]}'
