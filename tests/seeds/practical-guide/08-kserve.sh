#!/usr/bin/env bash
# "KServe ... wraps your model in an inference service": a real scikit-learn model behind an address, Ready when it is loaded.
source "$(dirname "$0")/../lib.sh"
source tests/live/serving/models.sh
up_machine
iris_model "$SCRATCH/iris"
sed "s|/srv/models/iris|$SCRATCH/iris|" "$EXAMPLE" | kubectl apply -f -
isvc_ready sklearn-iris
# Ready means that the first request is answered.
answer=$(ask sklearn-iris /v1/models/sklearn-iris:predict '{"instances": [[6.8, 2.8, 4.8, 1.4], [5.1, 3.5, 1.4, 0.2]]}')
equals "$answer" '{"predictions": [1, 0]}' "what the model says"
equals "$(ask sklearn-iris /v1/models/sklearn-iris)" '{"name": "sklearn-iris", "ready": true}'
contains "$(kubectl get isvc sklearn-iris)" "http://sklearn-iris-default.example.com   True           100"
contains "$(ask sklearn-iris /v1/models/other:predict '{"instances": [[1, 2, 3, 4]]}')" "Model with name other does not exist."
