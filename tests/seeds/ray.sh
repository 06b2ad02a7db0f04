# Shared by the tests that run Ray. Source it after lib.sh. The images of the articles are not here: their pods have this machine's root,
# and Ray as tests/tools/fetch-ray made it, at /opt/ray.
RAY=$ROOT/build/tools/ray
[ -e "$RAY/requirements.txt" ] || skip "Ray is not here (tests/tools/fetch-ray)"
[ -x /bin/bash ] || skip "no bash"

# with_ray: the objects on stdin, of which each container of each pod template finds Ray, and takes no more memory for its objects than
# these tests need.
with_ray() { "$RAY/bin/python" tests/seeds/with_ray.py "$RAY"; }

cluster_is() { [ "$(jsonpath "raycluster/$1" .status.state)" = "$2" ]; }
head_of() { kubectl get pods -l "ray.io/cluster=$1,ray.io/node-type=head" -o 'jsonpath={.items[0].metadata.name}'; }
# in_head CLUSTER COMMAND...: in its head's Ray container.
in_head() { kubectl exec "$(head_of "$1")" -- "${@:2}"; }
# What the articles ask for, cut down to one worker a group and what every machine has.
fit_ray() {
  sed -E 's/^( +replicas:) [2-9]/\1 1/; s/^( +cpu:) "[0-9]+"/\1 CPU/; s/^( +memory:) "[0-9]+Gi"/\1 2Gi/' "$@" |
    awk '/requests:/ {cpu = "100m"} /limits:/ {cpu = "1"} {sub(/cpu: CPU/, "cpu: \"" cpu "\""); print}'
}
