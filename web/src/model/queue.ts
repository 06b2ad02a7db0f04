// What waits: pods without a node, together with those that have to start with them, and jobs that have no quota yet.

import type { JobRow } from './job.ts';
import type { PodRow } from './pod.ts';
import type { WorkloadRow } from './workload.ts';

export interface Waiting {
  readonly key: string;
  readonly ns: string;
  readonly name: string;
  readonly kind: string; // of the job, or Pod
  readonly pods: number; // that wait
  readonly placed: number; // pods of it that have a node
  readonly gpus: number; // that it waits for
  readonly since: number;
  readonly priority: number;
  readonly queue: string;
  readonly why: string;
  readonly link: string;
}

// The longest waiting first.
export function waitingUnits(
  pods: Iterable<PodRow>,
  jobs: ReadonlyMap<string, JobRow>,
  workloads: Iterable<WorkloadRow> = [],
): Waiting[] {
  const waiting = new Map<string, PodRow[]>();
  const placed = new Map<string, number>();
  for (const pod of pods) {
    if (pod.over) continue;
    const key = unitOf(pod);
    if (pod.node !== '') {
      placed.set(key, (placed.get(key) ?? 0) + 1);
      continue;
    }
    const unit = waiting.get(key);
    if (unit === undefined) waiting.set(key, [pod]);
    else unit.push(pod);
  }
  const held = new Map<string, WorkloadRow>(); // by the job, or the pod, that it is about
  for (const workload of workloads)
    if (workload.waits && workload.owner !== undefined) held.set(workload.owner.uid, workload);
  const units: Waiting[] = [];
  for (const [key, members] of waiting) {
    const about = members.map((pod) => held.get(pod.owner?.uid ?? pod.uid)).find((one) => one !== undefined);
    if (about?.owner !== undefined) held.delete(about.owner.uid);
    units.push(describe(key, members, placed.get(key) ?? 0, jobs, about));
  }
  for (const workload of held.values()) units.push(describeHeld(workload));
  return units.sort((a, b) => a.since - b.since || a.key.localeCompare(b.key));
}

function unitOf(pod: PodRow): string {
  if (pod.group !== '') return `${pod.ns}/group/${pod.group}`;
  return pod.owner === undefined ? `${pod.ns}/pod/${pod.name}` : `${pod.ns}/owner/${pod.owner.uid}`;
}

function describe(
  key: string,
  pods: readonly PodRow[],
  placed: number,
  jobs: ReadonlyMap<string, JobRow>,
  held: WorkloadRow | undefined,
): Waiting {
  const one = pods.find((pod) => pod.why !== '') ?? (pods[0] as PodRow);
  const job = one.owner === undefined ? undefined : jobs.get(one.owner.uid);
  const alone = one.owner === undefined && one.group === '';
  return {
    key,
    ns: one.ns,
    name: job?.name ?? one.owner?.name ?? (alone ? one.name : one.group),
    kind: job?.kind ?? one.owner?.kind ?? (alone ? 'Pod' : 'PodGroup'),
    pods: pods.length,
    placed,
    gpus: pods.reduce((all, pod) => all + pod.gpus, 0),
    since: Math.min(...pods.map((pod) => pod.created)),
    priority: one.priority,
    queue: held?.queue || one.queue || job?.queue || '',
    why: held?.why || one.why,
    link: job === undefined ? link('pods', one.ns, one.name) : link('jobs', job.ns, job.kind, job.name),
  };
}

// It has no pods yet.
function describeHeld(held: WorkloadRow): Waiting {
  const kind = held.owner?.kind ?? '';
  const name = held.owner?.name ?? '';
  return {
    key: `${held.ns}/workload/${held.uid}`,
    ns: held.ns,
    name,
    kind,
    pods: held.pods,
    placed: 0,
    gpus: held.gpus,
    since: held.created,
    priority: held.priority,
    queue: held.queue,
    why: held.why,
    link: kind === 'Pod' ? link('pods', held.ns, name) : link('jobs', held.ns, kind, name),
  };
}

function link(...parts: readonly string[]): string {
  return `#/${parts.map(encodeURIComponent).join('/')}`;
}
