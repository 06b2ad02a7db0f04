// Every job, whatever its kind.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';

import { duration, short } from '../model/format.ts';
import type { JobView } from '../model/job.ts';
import { useCluster, useNow } from './hooks.ts';
import { Badge, Bar, Filter, matches, Page } from './parts.tsx';
import { VirtualList } from './virtual_list.tsx';

export function jobLink(view: JobView): string {
  const { ns, kind, name } = view.job;
  return `#/jobs/${encodeURIComponent(ns)}/${kind}/${encodeURIComponent(name)}`;
}

export function JobsPage({ ns }: { readonly ns: string }): VNode {
  const cluster = useCluster();
  const now = useNow();
  const [filter, setFilter] = useState('');
  const views = cluster.jobViews.filter(
    (view) =>
      (ns === '' || view.job.ns === ns) && matches(filter, view.job.name, view.job.ns, view.job.kind, view.phase),
  );
  return (
    <Page title="Jobs" aside={<Filter value={filter} onInput={setFilter} label="Filter jobs" />}>
      <VirtualList
        label="Jobs"
        className="jobs"
        items={views}
        rowHeight={56}
        keyOf={(view) => view.job.uid}
        row={(view) => <JobLine view={view} now={now} />}
        header={
          <div class="list-head line job-line" role="row">
            <span role="columnheader">Job</span>
            <span role="columnheader">State</span>
            <span role="columnheader">Pods running</span>
            <span role="columnheader" class="number wide">
              GPUs
            </span>
            <span role="columnheader" class="number wide">
              Restarts
            </span>
            <span role="columnheader" class="number">
              Age
            </span>
          </div>
        }
        empty={
          !cluster.discovered ? (
            <p>Loading the jobs …</p>
          ) : filter !== '' || ns !== '' ? (
            <p>No job matches.</p>
          ) : (
            <>
              <p>There are no jobs yet.</p>
              <p>
                <code>muster run --gpus 1 -- python train.py</code> starts one, <code>kubectl apply -f job.yaml</code>{' '}
                as well.
              </p>
            </>
          )
        }
      />
    </Page>
  );
}

function JobLine({ view, now }: { readonly view: JobView; readonly now: number }): VNode {
  const { job } = view;
  const total = view.wanted || view.pods.length;
  const fine = view.phase === 'Running' || view.phase === 'Succeeded' || view.phase === 'Suspended';
  return (
    <a class="line job-line" href={jobLink(view)}>
      <span class="two" role="cell">
        <strong>{job.name}</strong>
        <small title={view.why}>
          {job.kind} in {job.ns}
          {!fine && view.why !== '' ? ` · ${view.why}` : ''}
        </small>
      </span>
      <span role="cell">
        <Badge state={view.phase} />
      </span>
      <span class="with-bar" role="cell">
        <Bar part={total === 0 ? 0 : view.running / total} label={`${view.running} of ${total} pods run`} tone="good" />
        <span>
          {view.running}/{total}
        </span>
      </span>
      <span class="number wide" role="cell">
        {view.gpusWanted === 0
          ? ''
          : view.gpus === view.gpusWanted
            ? short(view.gpus)
            : `${short(view.gpus)} of ${short(view.gpusWanted)}`}
      </span>
      <span class="number wide" role="cell">
        {view.restarts === 0 ? '' : view.restarts}
      </span>
      <span class="number" role="cell">
        {duration((job.ended || now) - job.created)}
      </span>
    </a>
  );
}
