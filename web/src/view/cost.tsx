// Who holds GPUs, for how long, and which of them do nothing.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';

import { type Grouping, spenders, type Spender } from '../model/cost.ts';
import { hours, short } from '../model/format.ts';
import { useCluster, useNow } from './hooks.ts';
import { Bar, Page } from './parts.tsx';
import { VirtualList } from './virtual_list.tsx';

const DAY_MS = 24 * 3600 * 1000;
const PERIODS = [
  { name: '24 hours', length: DAY_MS },
  { name: '7 days', length: 7 * DAY_MS },
  { name: '30 days', length: 30 * DAY_MS },
] as const;

export function CostPage({ ns }: { readonly ns: string }): VNode {
  const cluster = useCluster();
  const now = Math.floor(useNow() / 5000) * 5000;
  const [by, setBy] = useState<Grouping>('namespace');
  const [length, setLength] = useState<number>(DAY_MS);
  const question = { by, now, since: now - length };
  const all = spenders(cluster.pods.rows.values(), cluster.past, cluster.figures, question);
  const rows = all.filter((one) => ns === '' || one.ns === ns);
  const most = Math.max(1e-9, ...rows.map((one) => one.gpuHours));
  const total = rows.reduce((sum, one) => sum + one.gpuHours, 0);
  const kept = cluster.ledgers?.state.name === 'live';
  const aside = (
    <>
      <select aria-label="Time" value={length} onChange={(event) => setLength(Number(event.currentTarget.value))}>
        {PERIODS.map((period) => (
          <option key={period.name} value={period.length}>{`Last ${period.name}`}</option>
        ))}
      </select>
      <div class="choice" role="group" aria-label="Sum up by">
        <button type="button" aria-pressed={by === 'namespace'} onClick={() => setBy('namespace')}>
          By namespace
        </button>
        <button type="button" aria-pressed={by === 'job'} onClick={() => setBy('job')}>
          By job
        </button>
      </div>
    </>
  );
  return (
    <Page title="Cost" aside={aside}>
      <p class="lead">
        {`${hours(total)} GPU-hours. `}
        {kept ? (
          <>
            In money: <code>muster cost</code>
          </>
        ) : (
          'Of pods that the cluster still knows: nothing is kept of those that were deleted.'
        )}
      </p>
      <VirtualList
        label="Cost"
        className="costs"
        items={rows}
        rowHeight={52}
        keyOf={(one) => one.key}
        row={(one) => <CostLine one={one} most={most} />}
        header={
          <div class="list-head line cost-line" role="row">
            <span role="columnheader">{by === 'namespace' ? 'Namespace' : 'Job'}</span>
            <span role="columnheader">GPU-hours</span>
            <span role="columnheader" class="number">
              GPUs now
            </span>
            <span role="columnheader" class="number wide">
              Idle now
            </span>
            <span role="columnheader" class="number wide">
              Pods
            </span>
          </div>
        }
        empty={cluster.pods.state.name === 'loading' ? <p>Loading the pods …</p> : <p>No pod has held a GPU yet.</p>}
      />
    </Page>
  );
}

function CostLine({ one, most }: { readonly one: Spender; readonly most: number }): VNode {
  return (
    <div class="line cost-line">
      <span class="two" role="cell">
        <strong>{one.name || one.ns}</strong>
        {one.name !== '' && (
          <small>
            {one.kind} in {one.ns}
          </small>
        )}
      </span>
      <span class="with-bar" role="cell">
        <Bar part={one.gpuHours / most} label={`${hours(one.gpuHours)} GPU-hours`} />
        <span>{hours(one.gpuHours)}</span>
      </span>
      <span class="number" role="cell">
        {one.gpus === 0 ? '' : short(one.gpus)}
      </span>
      <span class={`number wide${one.idleGpus > 0 ? ' tone-warn' : ''}`} role="cell">
        {one.gpus === 0 ? '' : one.measured === 0 ? '–' : short(one.idleGpus)}
      </span>
      <span class="number wide" role="cell">
        {one.pods}
      </span>
    </div>
  );
}
