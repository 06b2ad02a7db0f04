// GPU-hours within a time: of pods that are there from the start of each to its end, or to now; of those that are gone
// what was written down of them.

import type { Figures } from './figures.ts';
import type { Past } from './ledger.ts';
import type { PodRow } from './pod.ts';

export interface Spender {
  readonly key: string;
  readonly ns: string;
  readonly name: string; // of the job, or the pod; '' for a whole namespace
  readonly kind: string; // "pytorchjob"
  readonly pods: number;
  readonly gpus: number; // held at the moment
  readonly gpuHours: number;
  readonly idleGpus: number; // held, and measured to do nothing
  readonly measured: number; // held, and measured at all
}

export const IDLE_PERCENT = 5;
const HOUR = 3600 * 1000;

export type Grouping = 'namespace' | 'job';

export interface Question {
  readonly since: number;
  readonly now: number;
  readonly by: Grouping;
}

type Sum = { -readonly [K in keyof Spender]: Spender[K] };

// The most GPU-hours first.
export function spenders(
  pods: Iterable<PodRow>,
  past: Iterable<Past>,
  figures: ReadonlyMap<string, Figures>,
  question: Question,
): Spender[] {
  const sums = new Map<string, Sum>();
  for (const pod of pods) {
    if (pod.gpus === 0 || pod.started === 0) continue;
    const share = within(pod.started, pod.over ? pod.ended : question.now, question);
    if (share.time === 0 && pod.over) continue;
    const sum = sumOf(sums, pod.ns, pod.workload, question.by);
    ++sum.pods;
    sum.gpuHours += (pod.gpus * share.time) / HOUR;
    if (!pod.over) addPresent(sum, pod, figures);
  }
  for (const one of past) {
    const share = within(one.from, one.to, question);
    if (share.time === 0) continue;
    const sum = sumOf(sums, one.ns, one.workload, question.by);
    sum.pods += one.pods;
    sum.gpuHours += one.gpuHours * share.part;
  }
  return [...sums.values()].sort((a, b) => b.gpuHours - a.gpuHours || a.key.localeCompare(b.key));
}

// How much of an interval lies within the time that is asked about.
function within(from: number, to: number, { since, now }: Question): { time: number; part: number } {
  const time = Math.max(0, Math.min(to, now) - Math.max(from, since));
  return { time, part: to > from ? time / (to - from) : 0 };
}

function sumOf(sums: Map<string, Sum>, ns: string, workload: string, by: Grouping): Sum {
  const slash = workload.indexOf('/');
  const name = by === 'namespace' ? '' : workload.slice(slash + 1);
  const kind = by === 'namespace' ? '' : workload.slice(0, Math.max(0, slash));
  const key = `${ns}/${kind}/${name}`;
  const there = sums.get(key);
  if (there !== undefined) return there;
  const made = { key, ns, name, kind, pods: 0, gpus: 0, gpuHours: 0, idleGpus: 0, measured: 0 };
  sums.set(key, made);
  return made;
}

function addPresent(sum: Sum, pod: PodRow, figures: ReadonlyMap<string, Figures>): void {
  sum.gpus += pod.gpus;
  const share = pod.devices.length === 0 ? 0 : pod.gpus / pod.devices.length;
  for (const device of pod.devices) {
    const util = figures.get(device)?.util;
    if (util === undefined) continue;
    sum.measured += share;
    if (util < IDLE_PERCENT) sum.idleGpus += share;
  }
}
