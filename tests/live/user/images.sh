#!/usr/bin/env bash
# Part of tests/live/user.sh, as an ordinary user: an image with files of several owners is unpacked and run.
#   images.sh LAYOUT OWNER     OWNER: whose /owned, which is 42's in the image, is then
source "$(dirname "$0")/../lib.sh"
[ "$(id -u)" != 0 ] || fail "this test is for an ordinary user"
up >/dev/null
contains "$("$MUSTER" image load "$1")" docker.io/library/owners:1
kubectl run reader --image=owners:1 --image-pull-policy=Never --restart=Never >/dev/null
eventually 20 pod_phase_is reader Succeeded
equals "$(kubectl logs reader)" "$2 mine" "the owner of a file, and what is in it"
"$MUSTER" down --purge --data-dir "$DATA" >/dev/null
say "result: an image of several owners as an ordinary user: owner 42 is $2"
