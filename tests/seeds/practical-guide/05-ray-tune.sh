#!/usr/bin/env bash
# Ray Tune tries 20 settings as a RayJob: a cluster is made for it, a Job submits it and has its log. A second RayJob goes to the same
# cluster over HTTP, fails, and says so.
source "$(dirname "$0")/../lib.sh"
source tests/seeds/ray.sh
up_machine
job_status() { jsonpath "rayjob/$1" .status.jobDeploymentStatus; }
ended() { case $(job_status "$1") in Complete | Failed | ValidationFailed) ;; *) kubectl get rayjob,pods; return 1 ;; esac; }
with_ray <"$EXAMPLE" | kubectl apply -f -
eventually 240 ended tune
equals "$(job_status tune) $(jsonpath rayjob/tune .status.jobStatus)" "Complete SUCCEEDED" "status"
contains "$(kubectl logs job/tune)" "trials 20 errors 0 best rate" "what the job printed"

cluster=$(jsonpath rayjob/tune .status.rayClusterName)
kubectl apply -f - <<YAML
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: fails}
spec:
  submissionMode: HTTPMode
  entrypoint: sh -c 'echo wrong; exit 3'
  clusterSelector: {ray.io/cluster: $cluster}
YAML
eventually 60 ended fails
equals "$(job_status fails) $(jsonpath rayjob/fails '.status.jobStatus} {.status.reason} {.status.failed')" "Failed FAILED AppFailed 1" "status"
contains "$(jsonpath rayjob/fails .status.message)" "exit code 3" "message"

contains "$(muster explain job fails)" "RayJob fails is Failed, Ray says FAILED" "muster explain"
# With its RayJob the cluster goes, and its pods.
kubectl delete rayjob tune --wait >/dev/null
no_pods() { [ -z "$(kubectl get pods -l ray.io/cluster="$cluster" -o name)" ]; }
eventually 60 no_pods
say "result: 20 trials of Ray Tune as a RayJob"
