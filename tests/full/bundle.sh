#!/usr/bin/env bash
# Issue 4: the archive of ./quickstart --bundle, unpacked in a minimal Debian 12 without any of our packages: up, a pod
# that reaches another through a Service (so nft and all libraries are there), down, and nothing is left.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/full/debian-root
make_debian_root
bundle=$PWD/build/bundle-test.tar.gz
./quickstart --bundle "$bundle"
tar xf "$bundle" -C "$root/opt"
for program in ip nft python3; do
  if box sh -c "command -v $program"; then echo "FAIL: this root has $program, so it would prove nothing"; exit 1; fi
done
cat >"$root/root/greeter.yaml" <<'YAML'
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
cat >"$root/root/client.sh" <<'CLIENT'
until exec 3<>/dev/tcp/greeter/80; do read -rt 0.2 <> <(:) || true; done 2>/dev/null
cat <&3
env | grep ^LD_ || echo no loader variables
CLIENT
box bash -ec '
  export PATH=/opt/muster/bin:$PATH
  muster up --detach
  muster apply -f /root/greeter.yaml
  muster run --name client -- bash -c "$(cat /root/client.sh)"
  muster down --purge
  test ! -e /var/lib/muster' | tee "$root/out"
for line in "hello through the Service" "no loader variables" "nothing is left"; do
  grep -q "$line" "$root/out" || { echo "FAIL: no '$line' in the output"; exit 1; }
done
echo "result: bundle of $(($(stat -c %s "$bundle") / 1000)) kB: up, pod, down on a bare Debian 12 in $SECONDS s"
