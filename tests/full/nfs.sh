#!/usr/bin/env bash
# Issue 6: static NFS volumes against a real NFS server, Linux' own, through the real mount(8) and mount.nfs: in a virtual
# machine, since not every kernel that this runs on has NFS. The same with a stand-in for mount(8): tests/live/nfs.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec tests/full/vm/run -t 400 tests/full/nfs/in-vm
