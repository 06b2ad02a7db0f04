// What happened to a job and its pods, as it happens.

import type { VNode } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';

import { Collection } from '../api/collection.ts';
import { duration } from '../model/format.ts';
import { type KubernetesEvent, timeOf } from '../model/kubernetes.ts';
import { ClusterContext, useNow } from './hooks.ts';

interface EventRow {
  readonly uid: string;
  readonly time: number;
  readonly warning: boolean;
  readonly reason: string;
  readonly message: string;
  readonly times: number;
  readonly about: string; // the name of the object
}

const MAX_OBJECTS = 9; // the job and so many of its pods
const MAX_SHOWN = 100;

export function projectEvent(event: KubernetesEvent): EventRow {
  return {
    uid: event.metadata.uid,
    time:
      timeOf(event.series?.lastObservedTime) ||
      timeOf(event.lastTimestamp) ||
      timeOf(event.eventTime) ||
      timeOf(event.metadata.creationTimestamp),
    warning: event.type === 'Warning',
    reason: event.reason ?? '',
    message: event.message ?? '',
    times: event.series?.count ?? event.count ?? 1,
    about: event.involvedObject?.name ?? '',
  };
}

export function Events({ uids, ns }: { readonly uids: readonly string[]; readonly ns: string }): VNode {
  const client = useContext(ClusterContext)?.client;
  const [rows, setRows] = useState<readonly EventRow[] | undefined>(undefined);
  const [denied, setDenied] = useState('');
  const now = useNow();
  const watched = uids.slice(0, MAX_OBJECTS).join(' ');
  useEffect(() => {
    if (client === undefined) return;
    const collections: Collection<EventRow>[] = [];
    const gather = (): void => {
      const all = collections.flatMap((one) => [...one.rows.values()]);
      setRows(all.sort((a, b) => b.time - a.time).slice(0, MAX_SHOWN));
      const refused = collections.find((one) => one.state.name === 'denied')?.state;
      setDenied(refused?.name === 'denied' ? refused.message : '');
    };
    for (const uid of watched.split(' ')) {
      const path = `/api/v1/namespaces/${encodeURIComponent(ns)}/events?fieldSelector=involvedObject.uid%3D${uid}`;
      collections.push(new Collection(client, path, (object) => projectEvent(object as KubernetesEvent), gather));
    }
    for (const one of collections) one.start();
    return () => collections.forEach((one) => one.stop());
  }, [client, ns, watched]);
  return (
    <section class="events" aria-label="Events">
      <h2>Events</h2>
      <div class="events-box">
        {denied !== '' ? (
          <p class="empty">{denied}</p>
        ) : rows === undefined ? (
          <p class="empty">Loading …</p>
        ) : rows.length === 0 ? (
          <p class="empty">No events; they are kept for an hour.</p>
        ) : null}
        <ul>
          {rows?.map((row) => (
            <li key={row.uid}>
              <span class={row.warning ? 'event-reason tone-warn' : 'event-reason'}>
                {row.reason}
                {row.times > 1 ? ` ×${row.times}` : ''}
              </span>
              <time>
                {row.about} · {duration(now - row.time)} ago
              </time>
              <span class="event-message">{row.message}</span>
            </li>
          ))}
        </ul>
      </div>
    </section>
  );
}
