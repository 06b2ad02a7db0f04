#!/usr/bin/env bash
# Issue 4: the archive of ./quickstart --bundle, unpacked in a minimal Debian 12 without any of our packages: up, a pod
# that reaches another through a Service (so nft and all libraries are there), down, and nothing is left. As root and not.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/full/debian-root
make_debian_root
bundle=$PWD/build/bundle-test.tar.gz
./quickstart --bundle "$bundle"
tar xf "$bundle" -C "$root/opt"
mkdir -p "$root/home/ada" && chown 1000:1000 "$root/home/ada"
for program in ip nft python3; do
  if box sh -c "command -v $program"; then echo "FAIL: this root has $program, so it would prove nothing"; exit 1; fi
done
cat >"$root/opt/greeter.yaml" <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: greeter, labels: {app: greeter}}
spec:
  containers:
    - name: greeter
      image: none
      command: [perl, -MIO::Socket::INET, -e, 'my $l = IO::Socket::INET->new(LocalPort => 80, Listen => 5) or die;
        while (my $c = $l->accept) { print $c "hello through the Service\n"; close $c }']
---
apiVersion: v1
kind: Service
metadata: {name: greeter}
spec: {selector: {app: greeter}, ports: [{port: 80}]}
YAML
cat >"$root/opt/client.sh" <<'CLIENT'
deadline=$((SECONDS + 60))
until exec 3<>/dev/tcp/greeter/80; do
  [ $SECONDS -lt $deadline ] || { echo "greeter did not answer within 60 s"; exit 1; }
  read -rt 0.2 <> <(:) || true
done 2>/dev/null
cat <&3
env | grep ^LD_ || echo no loader variables
CLIENT
use='
  export PATH=/opt/muster/bin:$PATH
  muster doctor || true
  muster up --detach
  muster apply -f /opt/greeter.yaml
  muster run --name client -- bash -c "$(cat /opt/client.sh)"
  muster down --purge'
box bash -ec "$use; test ! -e /var/lib/muster" | tee "$root/root.out"
box setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/home/ada bash -ec "$use; test ! -e ~/.muster" |
  tee "$root/user.out"
for line in "hello through the Service" "no loader variables" "nothing is left"; do
  for output in root user; do
    grep -q "$line" "$root/$output.out" || { echo "FAIL: no '$line' in the output of $output"; exit 1; }
  done
done
echo "result: bundle of $(($(stat -c %s "$bundle") / 1000)) kB: up, pods, down as root and not on a bare Debian 12 in $SECONDS s"
