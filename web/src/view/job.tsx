// One job, or one pod: its ranks, their logs, what happened.

import type { VNode } from 'preact';
import { useState } from 'preact/hooks';

import { duration, short } from '../model/format.ts';
import { type JobView, type Phase, viewJob } from '../model/job.ts';
import type { PodRow } from '../model/pod.ts';
import { Events } from './events.tsx';
import { useCluster, useNow } from './hooks.ts';
import { Logs, rankName } from './logs.tsx';
import { Fact } from './node.tsx';
import { Badge, Page } from './parts.tsx';
import { VirtualList } from './virtual_list.tsx';

export function JobPage({
  ns,
  kind,
  name,
}: {
  readonly ns: string;
  readonly kind: string;
  readonly name: string;
}): VNode {
  const cluster = useCluster();
  const view =
    cluster.jobViews.find((one) => one.job.ns === ns && one.job.kind === kind && one.job.name === name) ??
    nested(cluster.jobViews, cluster.jobRows.values(), ns, kind, name);
  const title = (
    <>
      <a class="crumb" href="#/jobs">
        Jobs
      </a>{' '}
      {name}
    </>
  );
  if (view === undefined) {
    return (
      <Page title={title}>
        <p class="empty">
          {cluster.discovered ? `There is no ${kind} of this name in ${ns} (any more).` : 'Loading …'}
        </p>
      </Page>
    );
  }
  return <Detail key={view.job.uid} title={title} view={view} subtitle={`${kind} in ${ns}`} />;
}

// A job that another one consists of.
function nested(
  views: readonly JobView[],
  rows: Iterable<JobView['job']>,
  ns: string,
  kind: string,
  name: string,
): JobView | undefined {
  for (const job of rows) {
    if (job.ns !== ns || job.kind !== kind || job.name !== name) continue;
    const pods = views.flatMap((view) => view.pods).filter((pod) => pod.owner?.uid === job.uid);
    return viewJob(job, pods);
  }
  return undefined;
}

export function PodPage({ ns, name }: { readonly ns: string; readonly name: string }): VNode {
  const cluster = useCluster();
  const pod = [...cluster.pods.rows.values()].find((one) => one.ns === ns && one.name === name);
  const above = cluster.jobViews.find((view) => pod !== undefined && view.pods.includes(pod));
  const crumb =
    above === undefined ? (
      <a class="crumb" href="#/jobs">
        Jobs
      </a>
    ) : (
      <a class="crumb" href={`#/jobs/${above.job.ns}/${above.job.kind}/${above.job.name}`}>
        {above.job.name}
      </a>
    );
  const title = (
    <>
      {crumb} {name}
    </>
  );
  if (pod === undefined) {
    return (
      <Page title={title}>
        <p class="empty">
          {cluster.pods.state.name === 'loading' ? 'Loading …' : `There is no pod of this name in ${ns} (any more).`}
        </p>
      </Page>
    );
  }
  return <Detail key={pod.uid} title={title} view={viewPod(pod)} subtitle={`Pod in ${ns}`} />;
}

// As a job of one pod.
function viewPod(pod: PodRow): JobView {
  const phase: Phase = pod.failed ? 'Failed' : pod.over ? 'Succeeded' : pod.state === 'Running' ? 'Running' : 'Waiting';
  const job = {
    uid: pod.uid,
    kind: 'Pod',
    ns: pod.ns,
    name: pod.name,
    owner: '',
    created: pod.created,
    ended: pod.ended,
    phase,
    why: pod.why,
    wanted: 1,
    restarts: pod.restarts,
    queue: pod.queue,
  };
  return viewJob(job, [pod]);
}

interface DetailProps {
  readonly title: VNode;
  readonly subtitle: string;
  readonly view: JobView;
}

function Detail({ title, subtitle, view }: DetailProps): VNode {
  const now = useNow();
  const [chosen, setChosen] = useState('');
  const shown = chosen === '' ? view.pods : view.pods.filter((pod) => pod.uid === chosen);
  const { job } = view;
  const ranked = view.pods.some((pod) => pod.rank >= 0);
  return (
    <Page title={title} aside={<Badge state={view.phase} />}>
      <p class={view.phase === 'Failed' ? 'lead tone-bad' : 'lead'}>{view.why || '\u00a0'}</p>
      <dl class="facts">
        <Fact name="What" value={subtitle} />
        <Fact name={job.ended > 0 ? 'Took' : 'Age'} value={duration((job.ended || now) - job.created)} />
        <Fact name="Pods running" value={`${view.running} of ${view.wanted || view.pods.length}`} />
        {view.gpusWanted > 0 && <Fact name="GPUs" value={`${short(view.gpus)} of ${short(view.gpusWanted)}`} />}
        <Fact name="Restarts" value={String(view.restarts)} />
        {job.queue !== '' && <Fact name="Queue" value={job.queue} />}
      </dl>
      <div class="columns">
        <div class="column">
          <h2>
            {ranked ? 'Ranks' : 'Pods'} <small>{view.pods.length}</small>
          </h2>
          <VirtualList
            label="Ranks"
            className="ranks"
            items={view.pods}
            rowHeight={48}
            keyOf={(pod) => pod.uid}
            row={(pod) => (
              <RankLine
                pod={pod}
                told={view.why}
                chosen={pod.uid === chosen}
                onChoose={() => setChosen(pod.uid === chosen ? '' : pod.uid)}
              />
            )}
            empty={<p>It has no pods at the moment.</p>}
          />
          <Events uids={[...new Set([job.uid, ...view.pods.map((pod) => pod.uid)])]} ns={job.ns} />
        </div>
        <Logs pods={shown} one={shown.length === 1} />
      </div>
    </Page>
  );
}

function RankLine({
  pod,
  told,
  chosen,
  onChoose,
}: {
  readonly pod: PodRow;
  readonly told: string;
  readonly chosen: boolean;
  readonly onChoose: () => void;
}): VNode {
  const rank = rankName(pod);
  const onClick = (event: Event): void => {
    event.preventDefault();
    onChoose();
  };
  return (
    <a
      class={`line rank-line${rank === '' ? ' unranked' : ''}${chosen ? ' chosen' : ''}`}
      href="#"
      aria-pressed={chosen}
      role="button"
      onClick={onClick}
      title={chosen ? 'Show the logs of all ranks' : 'Show only the logs of this one'}
    >
      {rank !== '' && <span class="rank">{rank}</span>}
      <span class="two">
        <span class="clip">{pod.name}</span>
        <small class="clip" title={pod.why}>
          {(pod.why === told ? '' : pod.why) || pod.node || 'no node yet'}
          {pod.restarts > 0 ? ` · ${pod.restarts} restarts` : ''}
        </small>
      </span>
      <span class="number">{pod.gpus > 0 ? `${short(pod.gpus)} GPU` : ''}</span>
      <Badge state={pod.state} />
    </a>
  );
}
