// Kinds of work made of pods, and what the page keeps of one.

import { type AnyObject, conditionsOf, count, list, record, text, timeOf } from './kubernetes.ts';
import type { PodRow } from './pod.ts';

export type Phase = 'Waiting' | 'Running' | 'Restarting' | 'Suspended' | 'Succeeded' | 'Failed';

export interface JobKind {
  readonly kind: string;
  readonly group: string;
  readonly plural: string;
}

// Those that the server serves are shown (API discovery says which, and in what version).
export const JOB_KINDS: readonly JobKind[] = [
  { kind: 'PyTorchJob', group: 'kubeflow.org', plural: 'pytorchjobs' },
  { kind: 'TFJob', group: 'kubeflow.org', plural: 'tfjobs' },
  { kind: 'MPIJob', group: 'kubeflow.org', plural: 'mpijobs' },
  { kind: 'JAXJob', group: 'kubeflow.org', plural: 'jaxjobs' },
  { kind: 'XGBoostJob', group: 'kubeflow.org', plural: 'xgboostjobs' },
  { kind: 'PaddleJob', group: 'kubeflow.org', plural: 'paddlejobs' },
  { kind: 'TrainJob', group: 'trainer.kubeflow.org', plural: 'trainjobs' },
  { kind: 'DistributedTraining', group: 'ml.example.com', plural: 'distributedtrainings' },
  { kind: 'JobSet', group: 'jobset.x-k8s.io', plural: 'jobsets' },
  { kind: 'Job', group: 'batch', plural: 'jobs' },
  { kind: 'RayJob', group: 'ray.io', plural: 'rayjobs' },
  { kind: 'RayCluster', group: 'ray.io', plural: 'rayclusters' },
  { kind: 'RayService', group: 'ray.io', plural: 'rayservices' },
  { kind: 'InferenceService', group: 'serving.kserve.io', plural: 'inferenceservices' },
];

export interface JobRow {
  readonly uid: string;
  readonly kind: string;
  readonly ns: string;
  readonly name: string;
  readonly owner: string; // uid of the object that made it, '' if a person did
  readonly created: number;
  readonly ended: number; // 0: it has not
  readonly phase: Phase; // as the object says; whether its pods wait is seen in them
  readonly why: string; // the latest condition in words
  readonly wanted: number; // pods; 0: not known
  readonly restarts: number;
  readonly queue: string;
}

export function projectJob(kind: string, object: AnyObject): JobRow {
  const meta = object.metadata;
  const said = phaseOf(kind, object);
  return {
    uid: meta.uid,
    kind,
    ns: meta.namespace ?? '',
    name: meta.name,
    owner: meta.ownerReferences?.find((owner) => owner.controller)?.uid ?? '',
    created: timeOf(meta.creationTimestamp),
    ended: said.phase === 'Succeeded' || said.phase === 'Failed' ? said.since : 0,
    phase: said.phase,
    why: said.why,
    wanted: wantedPods(object),
    restarts: restartsOf(object),
    queue: meta.labels?.['kueue.x-k8s.io/queue-name'] ?? '',
  };
}

interface Said {
  readonly phase: Phase;
  readonly why: string;
  readonly since: number;
}

const PHASES: Readonly<Record<string, Phase>> = {
  Succeeded: 'Succeeded',
  Complete: 'Succeeded',
  Completed: 'Succeeded',
  SuccessCriteriaMet: 'Succeeded',
  Failed: 'Failed',
  FailureTarget: 'Failed',
  Suspended: 'Suspended',
  Restarting: 'Restarting',
  Running: 'Running',
  Ready: 'Running',
  Created: 'Waiting',
};
// Of conditions that hold at the same time, the first of these tells most.
const TELLING = [
  'Failed',
  'Complete',
  'Completed',
  'Succeeded',
  'SuccessCriteriaMet',
  'FailureTarget',
  'Suspended',
  'Restarting',
  'Running',
  'Ready',
  'Created',
];

function phaseOf(kind: string, object: AnyObject): Said {
  const status = record(object.status);
  const conditions = conditionsOf(object);
  for (const type of TELLING) {
    const held = conditions.find((one) => one.type === type && one.status === 'True');
    const phase = PHASES[type];
    if (held === undefined || phase === undefined) continue;
    return { phase, why: held.message || held.reason || '', since: timeOf(held.lastTransitionTime) };
  }
  if (kind.startsWith('Ray')) return rayPhase(status);
  const unready = conditions.find((one) => one.type === 'Ready');
  if (unready !== undefined) return { phase: 'Waiting', why: unready.message || unready.reason || '', since: 0 };
  const word = text(status['phase']);
  const phase = PHASES[word] ?? (count(status['active']) > 0 ? 'Running' : 'Waiting');
  return { phase, why: text(status['message']), since: timeOf(text(status['completionTime'])) };
}

function rayPhase(status: Readonly<Record<string, unknown>>): Said {
  const why = text(status['message']) || text(status['reason']);
  const since = timeOf(text(status['endTime']));
  const word =
    text(status['jobStatus']) ||
    text(status['jobDeploymentStatus']) ||
    text(status['serviceStatus']) ||
    text(status['state']);
  switch (word.toUpperCase()) {
    case 'SUCCEEDED':
    case 'COMPLETE':
      return { phase: 'Succeeded', why, since };
    case 'FAILED':
    case 'STOPPED':
      return { phase: 'Failed', why, since };
    case 'SUSPENDED':
      return { phase: 'Suspended', why, since };
    case 'RUNNING':
    case 'READY':
      return { phase: 'Running', why, since };
    default:
      return { phase: 'Waiting', why, since };
  }
}

function wantedPods(object: AnyObject): number {
  const spec = record(object.spec);
  let wanted = 0;
  for (const [field, roles] of Object.entries(spec)) {
    if (!field.endsWith('ReplicaSpecs')) continue;
    for (const role of Object.values(record(roles))) wanted += replicas(record(role)['replicas']);
  }
  for (const one of list(spec['replicatedJobs'])) {
    const job = record(record(record(one)['template'])['spec']);
    wanted += replicas(record(one)['replicas']) * replicas(job['parallelism']);
  }
  const cluster = record(spec['rayClusterSpec'] ?? (spec['headGroupSpec'] === undefined ? undefined : spec));
  if (cluster['headGroupSpec'] !== undefined) ++wanted;
  for (const group of list(cluster['workerGroupSpecs'])) wanted += replicas(record(group)['replicas']);
  if (wanted > 0) return wanted;
  if (spec['parallelism'] === undefined && spec['completions'] === undefined) return 0;
  return Math.min(replicas(spec['parallelism']), replicas(spec['completions'] ?? spec['parallelism']));
}

function replicas(value: unknown): number {
  return typeof value === 'number' ? value : 1;
}

function restartsOf(object: AnyObject): number {
  const status = record(object.status);
  const own = count(status['restarts']) || count(status['restartCount']);
  let failed = 0;
  for (const role of Object.values(record(status['replicaStatuses']))) failed += count(record(role)['failed']);
  return own || failed || count(status['failed']);
}

// A job with its pods.
export interface JobView {
  readonly job: JobRow;
  readonly pods: readonly PodRow[]; // by role and rank
  readonly phase: Phase | string; // or what keeps its pods from running: CrashLoopBackOff, ...
  readonly why: string;
  readonly running: number;
  readonly wanted: number;
  readonly gpus: number; // of pods that have a place
  readonly gpusWanted: number; // of all that have not ended
  readonly restarts: number;
}

// heldBack: what it waits for before it may have pods at all.
export function viewJob(job: JobRow, pods: readonly PodRow[], heldBack = ''): JobView {
  const sorted = [...pods].sort(byRank);
  const live = sorted.filter((pod) => !pod.over);
  const placed = live.filter((pod) => pod.node !== '');
  const running = live.filter((pod) => pod.state === 'Running').length;
  const over = job.phase === 'Succeeded' || job.phase === 'Failed' || job.phase === 'Suspended';
  const waiting = live.find((pod) => pod.node === '');
  const waits = !over && placed.length === 0 && waiting !== undefined;
  const troubled = over ? undefined : placed.find((pod) => /BackOff|Err|Invalid/.test(pod.state));
  const failed = over || live.length > 0 ? undefined : sorted.find((pod) => pod.failed);
  let phase: Phase | string = job.phase;
  if (waits || (heldBack !== '' && live.length === 0)) phase = 'Waiting';
  else if (troubled !== undefined) phase = troubled.state;
  else if (failed !== undefined) phase = 'Restarting';
  else if (job.phase === 'Waiting' && running > 0) phase = 'Running';
  const cause = over ? undefined : ((waits ? waiting : troubled) ?? failed ?? live.find((pod) => pod.why !== ''));
  return {
    job,
    pods: sorted,
    phase,
    why: heldBack || cause?.why || job.why,
    running,
    wanted: Math.max(job.wanted, live.length),
    gpus: placed.reduce((all, pod) => all + pod.gpus, 0),
    gpusWanted: live.reduce((all, pod) => all + pod.gpus, 0),
    restarts: Math.max(
      job.restarts,
      pods.reduce((all, pod) => all + pod.restarts, 0),
    ),
  };
}

const LEADERS = ['master', 'chief', 'launcher', 'head'];

// Leaders first, then by rank.
function byRank(a: PodRow, b: PodRow): number {
  const order = (pod: PodRow): number => (LEADERS.includes(pod.role) ? 0 : 1);
  return (
    order(a) - order(b) ||
    a.role.localeCompare(b.role) ||
    a.rank - b.rank ||
    a.created - b.created ||
    a.name.localeCompare(b.name)
  );
}

// uid of a job -> its pods. A pod belongs to its controller, to what made that one (a JobSet's Jobs, a RayJob's cluster),
// and to the job of its namespace that its labels name.
export function podsByJob(jobs: Iterable<JobRow>, pods: Iterable<PodRow>): Map<string, PodRow[]> {
  const byUid = new Map<string, JobRow>();
  const byName = new Map<string, JobRow[]>();
  for (const job of jobs) {
    byUid.set(job.uid, job);
    const key = `${job.ns}/${job.name}`;
    byName.set(key, [...(byName.get(key) ?? []), job]);
  }
  const out = new Map<string, PodRow[]>();
  const add = (uid: string, pod: PodRow): void => {
    const pods = out.get(uid);
    if (pods === undefined) out.set(uid, [pod]);
    else if (pods[pods.length - 1] !== pod) pods.push(pod);
  };
  for (const pod of pods) {
    let uid = pod.owner?.uid ?? '';
    let found = false;
    for (let depth = 0; uid !== '' && depth < 4; ++depth) {
      const job = byUid.get(uid);
      if (job === undefined) break;
      add(uid, pod);
      found = true;
      uid = job.owner;
    }
    // Between them there is an object of a kind that is not shown here, such as a ReplicaSet.
    const named =
      found || pod.job === '' ? undefined : byName.get(`${pod.ns}/${pod.job}`)?.find((job) => job.owner === '');
    if (named !== undefined) add(named.uid, pod);
  }
  return out;
}
