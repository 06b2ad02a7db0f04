// What waits, and the sentence that says why.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';

import { duration, gpuCount, plural } from '../model/format.ts';
import type { Waiting } from '../model/queue.ts';
import { useCluster, useNow } from './hooks.ts';
import { Filter, matches, Page } from './parts.tsx';
import { VirtualList } from './virtual_list.tsx';

export function QueuePage({ ns }: { readonly ns: string }): VNode {
  const cluster = useCluster();
  const now = useNow();
  const [filter, setFilter] = useState('');
  const units = cluster.waiting.filter(
    (unit) => (ns === '' || unit.ns === ns) && matches(filter, unit.name, unit.ns, unit.kind, unit.why, unit.queue),
  );
  const gpus = units.reduce((all, unit) => all + unit.gpus, 0);
  return (
    <Page title="Queue" aside={<Filter value={filter} onInput={setFilter} label="Filter the queue" />}>
      <p class="lead">{units.length === 0 ? ' ' : `${summary(units.length, gpus)}. The longest waiting come first.`}</p>
      <VirtualList
        label="Queue"
        className="queue"
        items={units}
        rowHeight={104}
        keyOf={(unit) => unit.key}
        row={(unit) => <UnitLine unit={unit} now={now} />}
        empty={
          cluster.pods.state.name === 'loading' ? (
            <p>Loading the pods …</p>
          ) : (
            <>
              <p>Nothing waits: every pod has its place.</p>
              <p>What cannot be placed yet stands here with the reason, and what would change it.</p>
            </>
          )
        }
      />
    </Page>
  );
}

function summary(units: number, gpus: number): string {
  const who = units === 1 ? 'One job or pod waits' : `${units.toLocaleString('en-US')} jobs and pods wait`;
  return gpus > 0 ? `${who} for ${gpuCount(gpus)}` : who;
}

function UnitLine({ unit, now }: { readonly unit: Waiting; readonly now: number }): VNode {
  const size = unit.pods + unit.placed;
  return (
    <a class="line queue-line" href={unit.link}>
      <span class="queue-main" role="cell">
        <span class="queue-name">
          <strong>{unit.name}</strong>{' '}
          <small>
            {unit.kind} in {unit.ns}
            {unit.queue === '' ? '' : `, queue ${unit.queue}`}
          </small>
        </span>
        <span class="why" title={unit.why}>
          {unit.why || 'The scheduler has not looked at it yet'}
        </span>
      </span>
      <span class="queue-side" role="cell">
        <span class="number">{unit.gpus > 0 ? gpuCount(unit.gpus) : plural(unit.pods, 'pod')}</span>
        <small>
          {unit.gpus > 0 && size > 1 ? `${unit.placed > 0 ? `${unit.pods} of ` : ''}${size} pods · ` : ''}
          {duration(now - unit.since)}
        </small>
      </span>
    </a>
  );
}
