// What waits: pods without a node, together with those that have to start with them.

import type { JobRow } from './job.ts';
import type { PodRow } from './pod.ts';

export interface Waiting {
  readonly key: string;
  readonly ns: string;
  readonly name: string;
  readonly kind: string; // of the job, or Pod
  readonly pods: readonly PodRow[]; // that wait
  readonly placed: number; // pods of it that have a node
  readonly gpus: number; // that it waits for
  readonly since: number;
  readonly priority: number;
  readonly queue: string;
  readonly why: string;
  readonly link: string;
}

// The longest waiting first.
export function waitingUnits(pods: Iterable<PodRow>, jobs: ReadonlyMap<string, JobRow>): Waiting[] {
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
  const units = [...waiting].map(([key, members]) => describe(key, members, placed.get(key) ?? 0, jobs));
  return units.sort((a, b) => a.since - b.since || a.key.localeCompare(b.key));
}

function unitOf(pod: PodRow): string {
  if (pod.group !== '') return `${pod.ns}/group/${pod.group}`;
  return pod.owner === undefined ? `${pod.ns}/pod/${pod.name}` : `${pod.ns}/owner/${pod.owner.uid}`;
}

function describe(key: string, pods: readonly PodRow[], placed: number, jobs: ReadonlyMap<string, JobRow>): Waiting {
  const one = pods.find((pod) => pod.why !== '') ?? (pods[0] as PodRow);
  const job = one.owner === undefined ? undefined : jobs.get(one.owner.uid);
  const alone = one.owner === undefined && one.group === '';
  return {
    key,
    ns: one.ns,
    name: job?.name ?? one.owner?.name ?? (alone ? one.name : one.group),
    kind: job?.kind ?? one.owner?.kind ?? (alone ? 'Pod' : 'PodGroup'),
    pods,
    placed,
    gpus: pods.reduce((all, pod) => all + pod.gpus, 0),
    since: Math.min(...pods.map((pod) => pod.created)),
    priority: one.priority,
    queue: one.queue || job?.queue || '',
    why: one.why,
    link: job === undefined ? `#/pods/${one.ns}/${one.name}` : `#/jobs/${job.ns}/${job.kind}/${job.name}`,
  };
}
