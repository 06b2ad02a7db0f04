#!/usr/bin/env bash
# Part of tests/live/user.sh, as an ordinary user: an image with files of several owners is loaded and run, and pulled.
#   images.sh LAYOUT OWNER     OWNER: whose /owned, which is 42's in the image, is then
source "$(dirname "$0")/../lib.sh"
[ "$(id -u)" != 0 ] || fail "this test is for an ordinary user"
up >/dev/null
contains "$("$MUSTER" image load "$1")" docker.io/library/owners:1
kubectl run reader --image=owners:1 --image-pull-policy=Never --restart=Never >/dev/null
eventually 20 pod_phase_is reader Succeeded
equals "$(kubectl logs reader)" "$2 mine" "the owner of a file, and what is in it"
if command -v docker-registry >/dev/null; then
  cat >"$SCRATCH/registry.yml" <<YAML
version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $SCRATCH/registry}}
http: {addr: "127.0.0.1:5000"}
YAML
  docker-registry serve "$SCRATCH/registry.yml" >"$SCRATCH/registry.log" 2>&1 &
  registry=$!
  eventually 10 skopeo copy -q --insecure-policy --dest-tls-verify=false "oci:$1:owners:1" docker://localhost:5000/owners:1
  pulled=$("$MUSTER" image pull localhost:5000/owners:1 2>&1 || true)
  kill $registry && wait $registry || true
  [[ $pulled == "Pulled "*localhost:5000/owners:1* ]] || fail "image pull: $pulled"
  say "result: an image pulled as an ordinary user, beside root's private /var/lib/containers"
else
  say "note: no docker-registry here"
fi
"$MUSTER" down --purge --data-dir "$DATA" >/dev/null
say "result: an image of several owners as an ordinary user: owner 42 is $2"
