// The first page: how the cluster is, and each node with its GPUs.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';

import type { Cluster } from '../api/cluster.ts';
import { bytes, gpuCount, plural, short } from '../model/format.ts';
import { IDLE_PERCENT } from '../model/cost.ts';
import type { NodeUse } from '../model/gpus.ts';
import { UseChart } from './chart.tsx';
import { useCluster } from './hooks.ts';
import { Bar, Filter, GpuCells, matches, Page } from './parts.tsx';
import { VirtualList } from './virtual_list.tsx';

export function NodesPage(): VNode {
  const cluster = useCluster();
  const [filter, setFilter] = useState('');
  const uses = cluster.uses.filter((use) => matches(filter, use.node.name, use.node.model, stateOf(use)));
  // Its place is kept while nobody knows yet.
  const charts = cluster.nodes.state.name === 'loading' || cluster.uses.some((use) => use.slots.length > 0);
  const { state } = cluster.nodes;
  if (state.name === 'denied') {
    return (
      <Page title="Nodes">
        <div class="empty">
          <p>This identity may not see nodes: {state.message}</p>
          <p>
            What it may see is in the <a href="#/queue">queue</a> and the <a href="#/jobs">jobs</a>.
          </p>
        </div>
      </Page>
    );
  }
  return (
    <Page title="Nodes" aside={<Filter value={filter} onInput={setFilter} label="Filter nodes" />}>
      <Tiles cluster={cluster} />
      {charts && (
        <section class="panel chart-panel" aria-label="GPUs over time">
          <Legend cluster={cluster} />
          <UseChart samples={cluster.samples} />
        </section>
      )}
      <VirtualList
        label="Nodes"
        className="nodes"
        items={uses}
        rowHeight={52}
        keyOf={(use) => use.node.uid}
        row={(use) => <NodeLine use={use} cluster={cluster} />}
        header={<Head />}
        empty={<NoNodes cluster={cluster} filtered={filter !== ''} />}
      />
    </Page>
  );
}

function Head(): VNode {
  return (
    <div class="list-head line node-line" role="row">
      <span role="columnheader">Node</span>
      <span role="columnheader">GPUs</span>
      <span role="columnheader" class="wide">
        CPU requested
      </span>
      <span role="columnheader" class="wide">
        Memory requested
      </span>
      <span role="columnheader" class="number">
        Pods
      </span>
    </div>
  );
}

export function stateOf(use: NodeUse): string {
  if (!use.node.ready) return 'Not ready';
  return use.node.cordoned ? 'Cordoned' : 'Ready';
}

function NodeLine({ use, cluster }: { readonly use: NodeUse; readonly cluster: Cluster }): VNode {
  const { node } = use;
  const state = stateOf(use);
  return (
    <a class="line node-line" href={`#/nodes/${encodeURIComponent(node.name)}`}>
      <span class="two" role="cell">
        <strong>{node.name}</strong>
        <small>
          {state === 'Ready' ? (
            node.model || 'no GPUs'
          ) : (
            <span class={`tone-${node.ready ? 'warn' : 'bad'}`}>
              {node.ready ? 'Cordoned: takes no new pods' : node.trouble}
            </span>
          )}
        </small>
      </span>
      <span class="cell-gpus" role="cell">
        <GpuCells slots={use.slots} figures={cluster.figures} />
        {use.slots.length > 0 && <small>{`${use.used} of ${use.slots.length}`}</small>}
      </span>
      <span class="wide two" role="cell">
        <Bar
          part={node.cpu === 0 ? 0 : use.cpu / node.cpu}
          label={`${short(use.cpu)} of ${short(node.cpu)} cores requested`}
        />
        <small>{`${short(use.cpu)} of ${short(node.cpu)}`}</small>
      </span>
      <span class="wide two" role="cell">
        <Bar
          part={node.memory === 0 ? 0 : use.memory / node.memory}
          label={`${bytes(use.memory)} of ${bytes(node.memory)} requested`}
        />
        <small>{`${bytes(use.memory)} of ${bytes(node.memory)}`}</small>
      </span>
      <span class="number" role="cell">
        {use.pods}
      </span>
    </a>
  );
}

function NoNodes({ cluster, filtered }: { readonly cluster: Cluster; readonly filtered: boolean }): VNode {
  const state = cluster.nodes.state;
  if (state.name === 'loading') return <p>Loading the nodes …</p>;
  if (filtered) return <p>No node matches the filter.</p>;
  return (
    <>
      <p>There are no nodes yet.</p>
      <p>
        <code>muster up</code> makes this machine one; with <code>--simulate-gpus 8:H100</code> it has GPUs to try
        things with.
      </p>
    </>
  );
}

function Tiles({ cluster }: { readonly cluster: Cluster }): VNode {
  const sums = sumUp(cluster);
  const jobs = cluster.jobViews.filter((view) => view.phase === 'Running' || view.phase === 'Restarting').length;
  const waitingGpus = cluster.waiting.reduce((all, unit) => all + unit.gpus, 0);
  const waitingPods = cluster.waiting.reduce((all, unit) => all + unit.pods, 0);
  return (
    <section class="tiles" aria-label="The cluster">
      <Tile
        href="#/nodes"
        name="GPUs in use"
        value={`${sums.used}`}
        of={`of ${sums.gpus}`}
        note={
          sums.unhealthy > 0
            ? `${plural(sums.unhealthy, 'GPU')} out of service`
            : `${plural(sums.gpus - sums.used, 'GPU')} free`
        }
        bad={sums.unhealthy > 0}
      />
      <Tile
        href="#/cost"
        name="Held but idle"
        value={sums.measured ? `${sums.idle}` : '–'}
        of={sums.measured ? plural(sums.idle, 'GPU').replace(/^\S+ /, '') : ''}
        note={sums.measured ? `under ${IDLE_PERCENT} % busy` : 'nodes measure nothing'}
      />
      <Tile
        href="#/queue"
        name="Waiting"
        value={plural(waitingPods, 'pod').split(' ')[0] ?? ''}
        of={waitingPods === 1 ? 'pod' : 'pods'}
        note={waitingPods === 0 ? 'nothing waits' : waitingGpus > 0 ? `for ${gpuCount(waitingGpus)}` : 'for a place'}
      />
      <Tile
        href="#/jobs"
        name="Jobs running"
        value={`${jobs}`}
        of={`of ${cluster.jobViews.length}`}
        note={plural(cluster.pods.rows.size, 'pod')}
      />
      <Tile
        href="#/nodes"
        name="Nodes ready"
        value={`${sums.ready}`}
        of={`of ${cluster.uses.length}`}
        note={
          sums.cordoned > 0
            ? `${sums.cordoned} cordoned`
            : sums.ready === cluster.uses.length
              ? 'all of them'
              : `${cluster.uses.length - sums.ready} not ready`
        }
        bad={sums.ready < cluster.uses.length}
      />
    </section>
  );
}

interface TileProps {
  readonly href: string;
  readonly name: string;
  readonly value: string;
  readonly of: string;
  readonly note: string;
  readonly bad?: boolean;
}

function Tile({ href, name, value, of, note, bad = false }: TileProps): VNode {
  return (
    <a class="tile panel" href={href}>
      <span class="tile-name">{name}</span>
      <span class="tile-value">
        {value} <small>{of}</small>
      </span>
      <span class={bad ? 'tile-note tone-bad' : 'tile-note'}>{note}</span>
    </a>
  );
}

function sumUp(cluster: Cluster) {
  const sums = { gpus: 0, used: 0, unhealthy: 0, idle: 0, measured: false, ready: 0, cordoned: 0 };
  for (const use of cluster.uses) {
    sums.gpus += use.slots.length;
    sums.used += use.used;
    sums.unhealthy += use.unhealthy;
    if (use.node.ready) ++sums.ready;
    if (use.node.cordoned) ++sums.cordoned;
    for (const slot of use.slots) {
      const util = cluster.figures.get(slot.gpu.id)?.util;
      if (util === undefined) continue;
      sums.measured = true;
      if (slot.pods.length > 0 && util < IDLE_PERCENT) ++sums.idle;
    }
  }
  return sums;
}

function Legend({ cluster }: { readonly cluster: Cluster }): VNode {
  const measured = cluster.samples.some((one) => one.busy !== undefined);
  return (
    <div class="legend">
      <span>
        <i class="key key-total" /> GPUs
      </span>
      <span>
        <i class="key key-used" /> held by pods
      </span>
      {measured && (
        <span>
          <i class="key key-busy" /> at work
        </span>
      )}
      <span class="legend-note">since this page was opened</span>
    </div>
  );
}
