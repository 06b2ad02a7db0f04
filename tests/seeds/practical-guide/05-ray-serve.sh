#!/usr/bin/env bash
# A RayService: a cluster is made, its applications are put to it, and the Service leads to it once they run. A change of the
# applications goes into the same cluster; a change of the cluster makes another one, and no request fails meanwhile.
source "$(dirname "$0")/../lib.sh"
source tests/seeds/ray.sh
up_machine
with_ray <"$EXAMPLE" >"$SCRATCH/service.yaml"
kubectl apply -f "$SCRATCH/service.yaml"
kubectl wait rayservice/serve-model --for=condition=Ready --timeout=150s
equals "$(kubectl get rayservice serve-model --no-headers | awk '{print $2, $3}')" "Running 1" "what kubectl get shows"
address=$(jsonpath service/serve-model-serve-svc .spec.clusterIP)
doubled() { [ "$(curl -sf --max-time 10 "http://$address:8000/?x=$1")" = "{\"doubled\":$2}" ]; }
eventually 30 doubled 21 42

first=$(jsonpath rayservice/serve-model .status.activeServiceStatus.rayClusterName)
sed -i 's/route_prefix: \//route_prefix: \/v2/' "$SCRATCH/service.yaml"
kubectl apply -f "$SCRATCH/service.yaml" >/dev/null
moved() { [ "$(curl -sf --max-time 10 "http://$address:8000/v2?x=4")" = '{"doubled":8}' ]; }
eventually 60 moved
equals "$(jsonpath rayservice/serve-model .status.activeServiceStatus.rayClusterName)" "$first" "cluster after a change of applications"
say "result: Ray Serve answered through its Service"
