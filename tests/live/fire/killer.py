"""kill -9 of the control plane, the spawner and the shims at seeded random moments while pods start, run, log,
fail, restart and are deleted. After each pod and at the end: nothing lost, nothing left.

    killer.py DATA_DIR KILLS SEED

What must hold: of a pod whose shim was not killed every exit code, log line and restart count is exact, however often
everything else was. A killed shim ends its pod: exit 137 and ContainerStatusUnknown, unless the end was written down
before; the log is then a beginning of what would have come, without a gap.
"""

import fcntl
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))
from kubernetes import Cluster  # noqa: E402

DATA, KILLS, SEED = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
MUSTER = os.environ["MUSTER"]
UP = [MUSTER, "up", "--detach", "--data-dir", DATA]
rng = random.Random(SEED)
counts = {"control plane": 0, "spawner": 0, "shim": 0, "pods": 0, "ended by their shim's death": 0, "deleted": 0,
          "restarts": 0, "lines": 0}
PATIENCE = 180


class Wrong(Exception):
    pass


def holder(lock):
    """The process that holds a record lock, None if nobody does."""
    try:
        with open(lock, "r+b") as file:
            asked = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, pid = struct.unpack("hhqqi", fcntl.fcntl(file, fcntl.F_GETLK, asked)[:struct.calcsize("hhqqi")])
            return pid if kind != fcntl.F_UNLCK and pid > 1 else None
    except OSError:
        return None


def processes(name):
    """Process ids by the name that `ps` shows; zombies count."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/comm") as file:
                if file.read().strip() == name:
                    found.append(int(entry))
        except OSError:
            pass
    return found


kinds = []  # of the next pods


class Pod:
    """What a pod does and what must become of it."""

    def __init__(self, number):
        self.name = f"fire-{number}"
        if not kinds:  # of six in a row one is of each sort
            kinds.extend(rng.sample(["count", "count", "count", "retry", "deleted", "two"], 6))
        self.kind = kinds.pop()
        self.lines = rng.randint(1, 400)
        self.code = rng.choice([0, 0, 1, 2, 3, 42, 255])
        self.uid = None
        self.shim_killed = False

    def spec(self):
        pause = rng.choice([0, 0.001, 0.01])
        count = f"i=0; while [ $i -lt {self.lines} ]; do i=$((i+1)); echo line $i; sleep {pause}; done"
        if pause == 0:
            count = f"seq -f 'line %.0f' 1 {self.lines}"
        main = {"name": "main", "image": "none", "command": ["sh", "-c", f"{count}; exit {self.code}"]}
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [main]}
        if self.kind == "retry":  # the first run fails, the second one succeeds
            spec["restartPolicy"] = "OnFailure"
            spec["volumes"] = [{"name": "state", "emptyDir": {}}]
            main["volumeMounts"] = [{"name": "state", "mountPath": "/state"}]
            main["command"][2] = f"{count}; [ -e /state/ran ] && exit 0; touch /state/ran; exit 7"
        elif self.kind == "deleted":  # runs until it is deleted
            main["command"][2] = f"trap 'exit 0' TERM; {count}; while true; do sleep 0.05; done"
        elif self.kind == "two":
            spec["containers"].append({"name": "side", "image": "none", "command": ["sh", "-c", "exit 9"]})
        return spec

    def shim(self):
        return holder(f"{DATA}/pods/{self.uid}/shim.lock") if self.uid else None

    def check_lines(self, text, whole):
        lines = text.splitlines()
        counts["lines"] += len(lines)
        expected = [f"line {i + 1}" for i in range(self.lines)]
        if whole and lines != expected:
            raise Wrong(f"{self.name}: {len(lines)} lines, {self.lines} expected: {lines[:3]} ... {lines[-3:]}")
        if lines != expected[:len(lines)]:
            raise Wrong(f"{self.name}: the log has a gap or a line twice: {lines}")

    def check(self, cluster, pod):
        """Of a pod that has ended."""
        statuses = {s["name"]: s for s in pod["status"]["containerStatuses"]}
        main = statuses["main"]
        ended = main["state"].get("terminated")
        if ended is None:
            raise Wrong(f"{self.name}: {pod['status']['phase']}, but main is {main['state']}")
        code = 0 if self.kind == "retry" else self.code
        restarts = main["restartCount"]
        counts["restarts"] += restarts
        lost = ended["reason"] == "ContainerStatusUnknown"
        if lost and (not self.shim_killed or ended["exitCode"] != 137):
            raise Wrong(f"{self.name}: lost without a reason: {ended}")
        if not lost and ended["exitCode"] != code:
            raise Wrong(f"{self.name}: exit code {ended['exitCode']}, expected {code}: {ended}")
        if self.kind == "retry":
            # OnFailure: whatever happened, in the end it succeeded.
            if lost or pod["status"]["phase"] != "Succeeded":
                raise Wrong(f"{self.name}: {pod['status']}")
            if not self.shim_killed and restarts != 1:
                raise Wrong(f"{self.name}: {restarts} restarts, expected 1")
        elif restarts != 0:
            raise Wrong(f"{self.name}: {restarts} restarts, expected none")
        failed = lost or code != 0 or self.kind == "two"
        if pod["status"]["phase"] != ("Failed" if failed else "Succeeded"):
            raise Wrong(f"{self.name}: phase {pod['status']['phase']}: {statuses}")
        if self.kind == "two":
            side = statuses["side"]["state"].get("terminated", {})
            if side.get("exitCode") != 9 and not (self.shim_killed and side.get("reason") == "ContainerStatusUnknown"):
                raise Wrong(f"{self.name}: side container: {side}")
        counts["ended by their shim's death"] += lost
        self.check_lines(cluster.logs(self.name), whole=not lost)


class Fire:
    def __init__(self):
        self.cluster = Cluster(f"{DATA}/kubeconfig", PATIENCE)
        self.pods = {}  # by name
        self.uids = set()
        self.born = 0
        self.rules = rules()
        self.descriptors = len(os.listdir(f"/proc/{self.control_plane()}/fd"))

    def control_plane(self):
        with open(f"{DATA}/run/muster.pid") as file:
            return int(file.read())

    def create(self):
        pod = Pod(self.born)
        self.born += 1
        counts["pods"] += 1
        self.cluster.create_pod(pod.name, pod.spec())
        self.pods[pod.name] = pod

    def up(self):
        done = subprocess.run(UP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        if done.returncode != 0:
            raise Wrong(f"muster up after a kill: exit {done.returncode}: {done.stdout}")

    def kill(self):
        what = rng.choice(["control plane", "spawner", "spawner", "shim", "shim"])
        victim = None
        if what == "control plane":
            victim = self.control_plane()
        elif what == "spawner":
            victim = holder(f"{DATA}/run/spawner.lock")
        else:
            with_shim = [pod for pod in self.pods.values() if pod.shim()]
            if with_shim:
                pod = rng.choice(with_shim)
                victim = pod.shim()
                pod.shim_killed = True
        if victim is None:
            return False
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            return False
        counts[what] += 1
        if what == "control plane":
            time.sleep(rng.choice([0, 0, rng.uniform(0, 0.2)]))
            self.up()
        return True

    def look(self):
        """Checks pods that have ended, deletes them and those that are to be deleted."""
        seen = self.cluster.pods()
        for name, pod in list(self.pods.items()):
            shown = seen.get(name)
            if shown is None:
                if pod.kind != "gone":
                    raise Wrong(f"{name} is not there any more")
                del self.pods[name]
                continue
            pod.uid = shown["metadata"]["uid"]
            self.uids.add(pod.uid)
            phase = shown.get("status", {}).get("phase")
            if pod.kind == "gone":
                continue
            if pod.kind == "deleted":
                if phase == "Failed" and not pod.shim_killed:
                    raise Wrong(f"{name} failed: {shown['status']}")
                if phase in ("Running", "Failed") and rng.random() < 0.5:
                    pod.check_lines(self.cluster.logs(name), whole=False) if phase == "Failed" else None
                    counts["deleted"] += 1
                    pod.kind = "gone"
                    self.cluster.delete_pod(name)
            elif phase in ("Succeeded", "Failed"):
                pod.check(self.cluster, shown)
                pod.kind = "gone"
                self.cluster.delete_pod(name)

    def wait_until_empty(self):
        deadline = time.monotonic() + PATIENCE
        while self.pods:
            self.look()
            if time.monotonic() > deadline:
                left = {name: self.cluster.pods()[name]["status"] for name in self.pods}
                raise Wrong(f"not within {PATIENCE} s: pods left: {json.dumps(left)[:3000]}")
            time.sleep(0.05)

    def leftovers(self):
        """What nobody owns any more."""
        found = [f"folder {name}" for name in os.listdir(f"{DATA}/pods")]
        found += [f"log folder {name}" for name in os.listdir(f"{DATA}/logs/pods")]
        found += [f"shim {pid}" for pid in processes("muster-shim")]
        for name in (os.path.basename(MUSTER)[:15], "muster-spawner"):
            if len(processes(name)) != 1:
                found.append(f"{len(processes(name))} processes {name}")
        found += [f"link {link}" for link in os.listdir("/sys/class/net") if link.startswith("mv")]
        with open("/proc/mounts") as file:
            found += [f"mount {line.split()[1]}" for line in file if f"{DATA}/pods" in line]
        for kind in ("net", "mnt", "pid", "ipc", "uts"):
            spaces = namespaces(kind)
            if len(spaces) != 1:
                found.append(f"{len(spaces)} namespaces {kind}")
        found += [f"cgroup {path}" for path in cgroups_of(self.uids)]
        if rules() != self.rules:
            found.append(f"nft rules: {rules()} instead of {self.rules}")
        descriptors = len(os.listdir(f"/proc/{self.control_plane()}/fd"))
        if descriptors > self.descriptors + 20:
            found.append(f"{descriptors} descriptors, at the start {self.descriptors}")
        return found

    def check_leftovers(self):
        """Folders are removed, and the kernel takes links away, a moment after the object is gone."""
        deadline = time.monotonic() + PATIENCE
        while found := self.leftovers():
            if time.monotonic() > deadline:
                raise Wrong(f"not within {PATIENCE} s: left behind: {', '.join(found)}")
            time.sleep(0.1)

    def run(self):
        kills = 0
        while kills < KILLS:
            while len(self.pods) < 6 and rng.random() < 0.7:
                self.create()
            time.sleep(rng.uniform(0, 0.15))
            kills += self.kill()
            self.look()
            if kills % 100 == 0 and kills > 0:
                self.wait_until_empty()
                self.check_leftovers()
                print(f"{kills} kills: {counts}", flush=True)
        self.wait_until_empty()
        self.check_leftovers()


def namespaces(kind):
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                found.add(os.readlink(f"/proc/{entry}/ns/{kind}"))
            except OSError:
                pass  # it ended, or it is a zombie
    return found


def cgroups_of(uids):
    """Cgroups of our pods: the tree is the machine's, others may have theirs in it."""
    found = []
    for controller in [""] + os.listdir("/sys/fs/cgroup"):
        parent = f"/sys/fs/cgroup/{controller}/muster"
        if os.path.isdir(parent):
            found += [f"{parent}/{name}" for name in os.listdir(parent) if name[3:] in uids]
    return found


def rules():
    return subprocess.run(["nft", "list", "ruleset"], stdout=subprocess.PIPE, text=True).stdout


fire = Fire()
try:
    fire.run()
except (Wrong, TimeoutError) as problem:
    print(f"seed {SEED}: after {counts}: {problem}", file=sys.stderr)
    sys.exit(1)
for event in ("control plane", "spawner", "shim", "deleted", "restarts"):
    if KILLS >= 30 and counts[event] == 0:
        sys.exit(f"seed {SEED}: '{event}' did not happen once: {counts}")
print(f"result: kill -9 {KILLS} times (seed {SEED}): " + ", ".join(f"{name} {n}" for name, n in counts.items()) +
      ": no exit code, line, restart count, phase, folder, process, namespace, mount, link, rule or cgroup lost or left")
