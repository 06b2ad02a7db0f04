#!/usr/bin/env bash
# A RayService: a cluster is made, its applications are put to it, and the Service leads to it once they run. A change of the
# applications goes into the same cluster; a change of the cluster makes another one, and no request fails meanwhile.
source "$(dirname "$0")/../lib.sh"
source tests/seeds/ray.sh
up_machine
with_ray <"$EXAMPLE" >"$SCRATCH/service.yaml"
kubectl apply -f "$SCRATCH/service.yaml"
kubectl wait rayservice/serve-model --for=condition=Ready --timeout=240s
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

# Another cluster: somebody asks all the time, and each time there is an answer.
(while [ ! -e "$SCRATCH/stop" ]; do
  moved || echo "not answered" >>"$SCRATCH/failed"
  echo asked >>"$SCRATCH/asked"
  read -rt 0.2 <> <(:) || true
done) &
client=$!
sed -i 's/rayStartParams:/rayStartParams:\n        num-cpus: "3"/' "$SCRATCH/service.yaml"
sed -i 's/^  rayClusterConfig:/  rayClusterDeletionDelaySeconds: 2\n  rayClusterConfig:/' "$SCRATCH/service.yaml"
kubectl apply -f "$SCRATCH/service.yaml" >/dev/null
switched() { [ "$(jsonpath rayservice/serve-model .status.activeServiceStatus.rayClusterName)" != "$first" ] || { kubectl get rayservice,pods; return 1; }; }
eventually 240 switched
is_gone() { [ -z "$(kubectl get pods -l ray.io/cluster="$first" -o name)" ]; }
eventually 60 is_gone
asked=$(wc -l <"$SCRATCH/asked")
more() { [ "$(wc -l <"$SCRATCH/asked")" -gt $((asked + 3)) ]; }
eventually 30 more
touch "$SCRATCH/stop"
wait $client
[ ! -e "$SCRATCH/failed" ] || fail "$(wc -l <"$SCRATCH/failed") of $(wc -l <"$SCRATCH/asked") requests were not answered"
say "result: Ray Serve answered through its Service, $(wc -l <"$SCRATCH/asked") requests while another cluster took over"
