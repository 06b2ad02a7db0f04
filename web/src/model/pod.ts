// What the page keeps of a Pod: a few hundred bytes of the several thousand that the object has.

import {
  type Container,
  type ContainerStatus,
  controllerOf,
  type Meta,
  type OwnerReference,
  type Pod,
  timeOf,
} from './kubernetes.ts';
import { gpuOf } from './node.ts';
import { quantity } from './quantity.ts';

export interface Owner {
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

export interface PodRow {
  readonly uid: string;
  readonly ns: string;
  readonly name: string;
  readonly node: string; // '': it has none yet
  readonly state: string; // as kubectl shows it: Running, Pending, CrashLoopBackOff, ...
  readonly over: boolean; // it has ended
  readonly failed: boolean;
  readonly ready: boolean;
  readonly gpus: number; // whole ones; a share counts as its part
  readonly devices: readonly string[]; // ids of the GPUs that it has
  readonly cpu: number;
  readonly memory: number;
  readonly owner: Owner | undefined;
  readonly workload: string; // whom people know as its maker, as `muster cost` names it: "pytorchjob/digits"
  readonly job: string; // its name, by the labels that the kinds of jobs give, '' if none
  readonly role: string; // "worker", "" if it has none
  readonly rank: number; // -1: it has none
  readonly group: string; // the PodGroup
  readonly queue: string;
  readonly priority: number;
  readonly created: number;
  readonly started: number; // 0: not yet
  readonly ended: number; // 0: not yet
  readonly restarts: number;
  readonly why: string; // the sentence that says what it waits for, or of what it failed; '' where there is none
  readonly containers: readonly string[];
}

const JOB_LABELS = [
  'training.kubeflow.org/job-name',
  'jobset.sigs.k8s.io/jobset-name',
  'ray.io/originated-from-cr-name',
  'ray.io/cluster',
  'serving.kserve.io/inferenceservice',
  'batch.kubernetes.io/job-name',
  'job-name',
];
const ROLE_LABELS = [
  'training.kubeflow.org/replica-type',
  'jobset.sigs.k8s.io/replicatedjob-name',
  'ray.io/node-type',
  'component',
];
const INDEX_LABELS = [
  'training.kubeflow.org/replica-index',
  'batch.kubernetes.io/job-completion-index',
  'apps.kubernetes.io/pod-index',
];
const GROUP_KEYS = [
  'scheduling.x-k8s.io/pod-group',
  'scheduling.k8s.io/group-name',
  'pod-group.scheduling.sigs.k8s.io',
];
const QUEUE_KEYS = ['kueue.x-k8s.io/queue-name', 'scheduling.volcano.sh/queue-name'];

export function projectPod(pod: Pod): PodRow {
  const meta = pod.metadata;
  const labels = meta.labels ?? {};
  const annotations = meta.annotations ?? {};
  const containers = pod.spec?.containers ?? [];
  const phase = pod.status?.phase ?? 'Pending';
  const owner = controllerOf(meta);
  const statuses = pod.status?.containerStatuses ?? [];
  return {
    uid: meta.uid,
    ns: meta.namespace ?? '',
    name: meta.name,
    node: pod.spec?.nodeName ?? '',
    state: stateOf(pod, phase),
    over: phase === 'Succeeded' || phase === 'Failed',
    failed: phase === 'Failed',
    ready: pod.status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') ?? false,
    gpus: sum(containers, gpusOf),
    devices: devicesOf(annotations['muster.dev/assigned-devices']),
    cpu: requested(pod, 'cpu'),
    memory: requested(pod, 'memory'),
    owner: owner === undefined ? undefined : { kind: owner.kind, name: owner.name, uid: owner.uid },
    workload: workloadOf(meta, owner),
    job: first(labels, JOB_LABELS),
    role: first(labels, ROLE_LABELS),
    rank: rankOf(containers, labels),
    group: first(labels, GROUP_KEYS) || first(annotations, GROUP_KEYS),
    queue: first(labels, QUEUE_KEYS) || first(annotations, QUEUE_KEYS),
    priority: pod.spec?.priority ?? 0,
    created: timeOf(meta.creationTimestamp),
    started: startOf(pod),
    ended: phase === 'Succeeded' || phase === 'Failed' ? endOf(pod) : 0,
    restarts: statuses.reduce((all, one) => all + (one.restartCount ?? 0), 0),
    why: whyOf(pod, phase),
    containers: containers.map((one) => one.name),
  };
}

// Of a JobSet not its Job, of a Deployment not its ReplicaSet.
function workloadOf(meta: Meta, owner: OwnerReference | undefined): string {
  const set = meta.labels?.['jobset.sigs.k8s.io/jobset-name'];
  if (set !== undefined) return `jobset/${set}`;
  if (owner === undefined) return `pod/${meta.name}`;
  const hash = `-${meta.labels?.['pod-template-hash'] ?? ''}`;
  if (owner.kind === 'ReplicaSet' && hash.length > 1 && owner.name.endsWith(hash))
    return `deployment/${owner.name.slice(0, -hash.length)}`;
  return `${owner.kind.toLowerCase()}/${owner.name}`;
}

function first(map: Readonly<Record<string, string>>, keys: readonly string[]): string {
  for (const key of keys) {
    const value = map[key];
    if (value !== undefined && value !== '') return value;
  }
  return '';
}

function sum(containers: readonly Container[], of: (one: Container) => number): number {
  return containers.reduce((all, one) => all + of(one), 0);
}

function amount(container: Container, name: string): number {
  return quantity(container.resources?.requests?.[name] ?? container.resources?.limits?.[name]);
}

function gpusOf(container: Container): number {
  return (
    amount(container, 'nvidia.com/gpu') +
    amount(container, 'nvidia.com/gpu.shared') +
    amount(container, 'muster.dev/gpu-milli') / 1000
  );
}

// As the scheduler counts: sidecars beside the containers, or the largest of the init containers if that is more.
function requested(pod: Pod, name: string): number {
  const inits = pod.spec?.initContainers ?? [];
  const sidecars = inits.filter((one) => one.restartPolicy === 'Always');
  const largest = Math.max(0, ...inits.filter((one) => one.restartPolicy !== 'Always').map((one) => amount(one, name)));
  const together = sum([...(pod.spec?.containers ?? []), ...sidecars], (one) => amount(one, name));
  return Math.max(largest, together) + quantity(pod.spec?.overhead?.[name]);
}

function devicesOf(annotation: string | undefined): string[] {
  if (annotation === undefined) return [];
  const ids = new Set<string>();
  try {
    const containers = JSON.parse(annotation) as Record<string, Record<string, string[]>>;
    for (const lists of Object.values(containers))
      for (const list of Object.values(lists)) for (const id of list) ids.add(gpuOf(id));
  } catch {
    return [];
  }
  return [...ids];
}

// The rank as the program sees it, if the container says; else its index.
function rankOf(containers: readonly Container[], labels: Readonly<Record<string, string>>): number {
  for (const container of containers) {
    const rank = container.env?.find((one) => one.name === 'RANK')?.value;
    if (rank !== undefined && /^\d+$/.test(rank)) return Number(rank);
  }
  const index = first(labels, INDEX_LABELS);
  return /^\d+$/.test(index) ? Number(index) : -1;
}

function statusesOf(pod: Pod): readonly ContainerStatus[] {
  return [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
}

function stateOf(pod: Pod, phase: string): string {
  if (pod.metadata.deletionTimestamp !== undefined && phase !== 'Succeeded' && phase !== 'Failed') return 'Terminating';
  if (pod.status?.reason) return pod.status.reason;
  if (phase === 'Failed') {
    const ended = statusesOf(pod).find((one) => (one.state?.terminated?.exitCode ?? 0) !== 0)?.state?.terminated;
    return ended?.reason || 'Failed';
  }
  for (const status of statusesOf(pod)) {
    const reason = status.state?.waiting?.reason;
    if (reason !== undefined && reason !== 'PodInitializing') return reason;
  }
  return phase;
}

function startOf(pod: Pod): number {
  const running =
    pod.status?.containerStatuses?.map((one) => timeOf(one.state?.running?.startedAt)).filter((time) => time > 0) ?? [];
  if (pod.status?.startTime !== undefined) return timeOf(pod.status.startTime);
  return running.length > 0 ? Math.min(...running) : 0;
}

function endOf(pod: Pod): number {
  const ends = pod.status?.containerStatuses?.map((one) => timeOf(one.state?.terminated?.finishedAt)) ?? [];
  const ready = pod.status?.conditions?.find((one) => one.type === 'Ready');
  return Math.max(0, ...ends) || timeOf(ready?.lastTransitionTime) || startOf(pod);
}

function whyOf(pod: Pod, phase: string): string {
  if (phase === 'Succeeded') return '';
  if (pod.status?.message) return pod.status.message;
  if (phase === 'Failed') return whyEnded(pod);
  const scheduled = pod.status?.conditions?.find((one) => one.type === 'PodScheduled');
  if (scheduled?.status === 'False') return scheduled.message || scheduled.reason || '';
  for (const status of statusesOf(pod)) {
    const waiting = status.state?.waiting;
    if (waiting?.message) return `Container ${status.name}: ${waiting.message}`;
  }
  return '';
}

function whyEnded(pod: Pod): string {
  for (const status of statusesOf(pod)) {
    const ended = status.state?.terminated;
    if (ended !== undefined && (ended.exitCode ?? 0) !== 0)
      return `Container ${status.name} exited with ${ended.exitCode}${ended.message ? `: ${ended.message}` : ''}`;
  }
  return '';
}
