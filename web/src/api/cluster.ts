// Cluster: everything that the page knows, kept up to date; views read it and are told when it has changed.

import { type Figures, parseFigures } from '../model/figures.ts';
import { type NodeUse, nodeUses } from '../model/gpus.ts';
import { type JobRow, type JobView, podsByJob, projectJob, viewJob } from '../model/job.ts';
import type { AnyObject, Node, Pod } from '../model/kubernetes.ts';
import { type LedgerRow, type Past, pastOf, projectLedger } from '../model/ledger.ts';
import { type NodeRow, projectNode } from '../model/node.ts';
import { type PodRow, projectPod } from '../model/pod.ts';
import { quantity } from '../model/quantity.ts';
import { type Waiting, waitingUnits } from '../model/queue.ts';
import { projectWorkload, type WorkloadRow } from '../model/workload.ts';
import { ApiError, type Client } from './client.ts';
import { Collection, type State } from './collection.ts';
import { discover, pathOf, servedJobKinds, serves, type ServedKind } from './discovery.ts';

// One point of the charts.
export interface Sample {
  readonly time: number;
  readonly gpus: number;
  readonly used: number;
  readonly busy: number | undefined; // GPUs' worth of work, as measured
  readonly waiting: number; // GPUs that are waited for
}

export interface Usage {
  readonly cpu: number;
  readonly memory: number;
}

const FRAME_MS = 150; // changes that come close together are shown together
const POLL_MS = 5000;
const SAMPLE_MS = 2500;
const DISCOVERY_MS = 60_000;
const MAX_SAMPLES = 2880; // two hours

// "/apis/batch/v1/jobs" in one namespace; '' stays ''.
export function inScope(path: string, namespace: string): string {
  const slash = path.lastIndexOf('/');
  if (namespace === '' || slash < 0) return path;
  return `${path.slice(0, slash)}/namespaces/${encodeURIComponent(namespace)}${path.slice(slash)}`;
}

export class Cluster {
  readonly nodes: Collection<NodeRow>;
  readonly pods: Collection<PodRow>;
  readonly jobs = new Map<string, Collection<JobRow>>(); // by path
  // Where the server has them: what is held back by quotas, and what pods that are gone held.
  workloads: Collection<WorkloadRow> | undefined;
  ledgers: Collection<LedgerRow> | undefined;
  kinds: readonly ServedKind[] = [];
  discovered = false;
  figures: ReadonlyMap<string, Figures> = new Map();
  usage: ReadonlyMap<string, Usage> = new Map(); // of nodes, as measured
  figuresDenied = false;
  samples: Sample[] = [];
  version = 0;

  private readonly listeners = new Set<() => void>();
  private readonly memo = new Map<string, { version: number; value: unknown }>();
  private frame: ReturnType<typeof setTimeout> | undefined;
  private readonly timers: ReturnType<typeof setInterval>[] = [];
  private measuresUsage = false;

  // scope: the namespace to which a token is confined, '' if it is to none.
  constructor(
    readonly client: Client,
    readonly scope: string,
  ) {
    this.nodes = new Collection(client, '/api/v1/nodes', (object) => projectNode(object as Node), this.changed);
    this.pods = new Collection(
      client,
      inScope('/api/v1/pods', scope),
      (object) => projectPod(object as Pod),
      this.changed,
    );
  }

  start(): void {
    this.nodes.start();
    this.pods.start();
    void this.lookForKinds();
    void this.poll();
    this.timers.push(
      setInterval(() => void this.lookForKinds(), DISCOVERY_MS),
      setInterval(() => void this.poll(), POLL_MS),
      setInterval(() => this.sample(), SAMPLE_MS),
    );
  }

  stop(): void {
    for (const timer of this.timers) clearInterval(timer);
    for (const one of this.collections()) one.stop();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  // What is worth telling of all that is watched: a loss goes before a refusal.
  get state(): State {
    if (this.nodes.state.name === 'denied' && this.nodes.state.status === 401) return this.nodes.state;
    for (const one of [this.pods, this.nodes, ...this.jobs.values()]) if (one.state.name === 'lost') return one.state;
    if (this.pods.state.name === 'denied') return this.pods.state;
    return this.pods.state.name === 'loading'
      ? this.pods.state
      : this.nodes.state.name === 'loading'
        ? this.nodes.state
        : { name: 'live' };
  }

  retry(): void {
    for (const one of this.collections()) one.retry();
  }

  get uses(): readonly NodeUse[] {
    return this.once('uses', () => nodeUses(this.nodes.rows.values(), this.pods.rows.values()));
  }

  get jobRows(): ReadonlyMap<string, JobRow> {
    return this.once('jobRows', () => {
      const all = new Map<string, JobRow>();
      for (const collection of this.jobs.values()) for (const [uid, job] of collection.rows) all.set(uid, job);
      return all;
    });
  }

  // Those that a person made, not those that another job consists of; the newest first.
  get jobViews(): readonly JobView[] {
    return this.once('jobViews', () => {
      const rows = this.jobRows;
      const pods = podsByJob(rows.values(), this.pods.rows.values());
      const top = [...rows.values()].filter((job) => !rows.has(job.owner));
      top.sort((a, b) => b.created - a.created || a.name.localeCompare(b.name));
      const held = new Map<string, string>();
      for (const one of this.workloads?.rows.values() ?? [])
        if (one.waits && one.owner !== undefined) held.set(one.owner.uid, one.why || 'It waits for quota');
      return top.map((job) => viewJob(job, pods.get(job.uid) ?? [], held.get(job.uid)));
    });
  }

  get waiting(): readonly Waiting[] {
    return this.once('waiting', () =>
      waitingUnits(this.pods.rows.values(), this.jobRows, this.workloads?.rows.values()),
    );
  }

  get past(): readonly Past[] {
    return this.once('past', () => pastOf(this.ledgers?.rows.values() ?? []));
  }

  get namespaces(): readonly string[] {
    return this.once('namespaces', () => {
      const names = new Set<string>();
      for (const pod of this.pods.rows.values()) names.add(pod.ns);
      for (const job of this.jobRows.values()) names.add(job.ns);
      return [...names].sort();
    });
  }

  private collections(): Collection<unknown>[] {
    const others = [this.workloads, this.ledgers].filter((one) => one !== undefined);
    return [this.nodes, this.pods, ...this.jobs.values(), ...others] as Collection<unknown>[];
  }

  // Worked out once for each state of the cluster.
  private once<T>(name: string, make: () => T): T {
    const kept = this.memo.get(name);
    if (kept?.version === this.version) return kept.value as T;
    const value = make();
    this.memo.set(name, { version: this.version, value });
    return value;
  }

  private readonly changed = (): void => {
    this.frame ??= setTimeout(() => {
      this.frame = undefined;
      ++this.version;
      for (const listener of this.listeners) listener();
    }, FRAME_MS);
  };

  private async lookForKinds(): Promise<void> {
    let discovery;
    try {
      discovery = await discover(this.client);
    } catch {
      return; // asked again later; that the server is gone is told by what is watched
    }
    this.kinds = servedJobKinds(discovery);
    this.discovered = true;
    this.workloads ??= this.follow(
      inScope(pathOf(discovery, 'kueue.x-k8s.io', 'workloads'), this.scope),
      projectWorkload,
    );
    this.ledgers ??= this.follow(pathOf(discovery, 'cost.muster.dev', 'costledgers'), projectLedger);
    this.measuresUsage = serves(discovery, 'metrics.k8s.io');
    for (const served of this.kinds) {
      if (this.jobs.has(served.path)) continue;
      const project = (object: AnyObject): JobRow => projectJob(served.kind, object);
      const collection = new Collection(this.client, inScope(served.path, this.scope), project, this.changed);
      this.jobs.set(served.path, collection);
      collection.start();
    }
    for (const [path, collection] of this.jobs) {
      if (this.kinds.some((served) => served.path === path)) continue;
      collection.stop();
      this.jobs.delete(path);
    }
    this.changed();
  }

  private follow<Row>(path: string, project: (object: AnyObject) => Row): Collection<Row> | undefined {
    if (path === '') return undefined;
    const collection = new Collection(this.client, path, project, this.changed);
    collection.start();
    return collection;
  }

  private async poll(): Promise<void> {
    if (document.hidden) return;
    if (this.nodes.state.name === 'live') {
      await Promise.all([this.readFigures(), this.readUsage()]);
      this.changed();
    }
  }

  private async readFigures(): Promise<void> {
    if (![...this.nodes.rows.values()].some((node) => node.gpus.length > 0)) return;
    try {
      this.figures = parseFigures(await this.client.text('/metrics'));
      this.figuresDenied = false;
    } catch (error) {
      this.figures = new Map();
      this.figuresDenied = error instanceof ApiError && error.status === 403;
    }
  }

  private async readUsage(): Promise<void> {
    if (!this.measuresUsage) return;
    interface Answer {
      readonly items: readonly {
        readonly metadata: { readonly name: string };
        readonly usage: Readonly<Record<string, string>>;
      }[];
    }
    try {
      const answer = await this.client.json<Answer>('/apis/metrics.k8s.io/v1beta1/nodes');
      this.usage = new Map(
        answer.items.map((one) => [
          one.metadata.name,
          { cpu: quantity(one.usage['cpu']), memory: quantity(one.usage['memory']) },
        ]),
      );
    } catch {
      this.usage = new Map();
    }
  }

  private sample(): void {
    if (this.nodes.state.name !== 'live' || this.pods.state.name !== 'live') return;
    let gpus = 0,
      used = 0,
      busy = 0,
      measured = false;
    for (const use of this.uses) {
      gpus += use.slots.length;
      used += use.used;
      for (const slot of use.slots) {
        const util = this.figures.get(slot.gpu.id)?.util;
        if (util === undefined) continue;
        measured = true;
        busy += util / 100;
      }
    }
    const waiting = this.waiting.reduce((all, unit) => all + unit.gpus, 0);
    this.samples.push({ time: Date.now(), gpus, used, busy: measured ? busy : undefined, waiting });
    if (this.samples.length > MAX_SAMPLES) this.samples = this.samples.slice(-MAX_SAMPLES);
    this.changed();
  }
}
