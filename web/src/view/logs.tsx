// The logs of some pods, line by line as they are written.

import type { VNode } from 'preact';
import { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { type Client, ApiError } from '../api/client.ts';
import { LineBuffer, type LogLine } from '../model/log_lines.ts';
import type { PodRow } from '../model/pod.ts';
import { ClusterContext } from './hooks.ts';

const LINE_HEIGHT = 20;
const MAX_PODS = 16;
const TAIL = 1000;
const FRAME_MS = 100;
const RETRY_MS = 2000;

interface Followed {
  readonly pod: PodRow;
  readonly container: string;
  readonly label: string; // before each line
  readonly colour: number;
}

export function rankName(pod: PodRow): string {
  const role = pod.role === '' ? '' : pod.role;
  if (pod.rank < 0) return role;
  return role === '' ? String(pod.rank) : `${role} ${pod.rank}`;
}

// Whether the pod has begun, so that there is something to read.
function begun(pod: PodRow): boolean {
  return pod.node !== '' && (pod.over || pod.state === 'Running' || pod.state === 'Terminating' || pod.restarts > 0);
}

// The chosen one if the pod has it, else its first.
function containerOf(pod: PodRow, chosen: string): string {
  return pod.containers.includes(chosen) ? chosen : (pod.containers[0] ?? '');
}

export function Logs({ pods, one }: { readonly pods: readonly PodRow[]; readonly one: boolean }): VNode {
  const client = useContext(ClusterContext)?.client;
  const [version, setVersion] = useState(0);
  const [container, setContainer] = useState('');
  const containers = [...new Set(pods.flatMap((pod) => pod.containers))];
  const readable = pods.filter(begun).slice(0, MAX_PODS);
  // Reads anew when another set of pods is wanted, or when a container of one has started again: no line of the former ones
  // is ever seen under a new heading.
  const wanted = readable.map((pod) => `${pod.uid}#${pod.restarts}`).join(' ');
  const buffer = useMemo(() => new LineBuffer(), [client, wanted, one, container]);

  useEffect(() => {
    if (client === undefined) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const changed = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined;
        buffer.settle();
        setVersion((n) => n + 1);
      }, FRAME_MS);
    };
    const ends = readable.map((pod, colour) => {
      const label = one ? '' : rankName(pod) || pod.name;
      return follow(client, { pod, container: containerOf(pod, container), label, colour }, buffer, changed);
    });
    return () => {
      clearTimeout(timer);
      for (const end of ends) end();
    };
  }, [buffer]);

  return (
    <section class="logs" aria-label="Logs">
      <h2>
        Logs{' '}
        <small>
          {one && pods[0] !== undefined
            ? pods[0].name
            : readable.length < pods.filter(begun).length
              ? `the first ${MAX_PODS} ranks`
              : pods.length > 1
                ? 'all ranks'
                : ''}
        </small>{' '}
        {containers.length > 1 && (
          <select
            aria-label="Container"
            value={container || containers[0]}
            onChange={(event) => setContainer(event.currentTarget.value)}
          >
            {containers.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
      </h2>
      {readable.length === 0 ? (
        <div class="log-box log-empty">
          <p class="empty">
            {pods.length === 0 ? 'There is no pod to read from.' : 'Nothing has started yet: its logs will be here.'}
          </p>
        </div>
      ) : (
        <Lines buffer={buffer} version={version} />
      )}
    </section>
  );
}

// Reads one log; goes on after an interruption. Returns what ends it.
function follow(client: Client, what: Followed, buffer: LineBuffer, changed: () => void): () => void {
  const { pod, label, colour } = what;
  const path = `/api/v1/namespaces/${encodeURIComponent(pod.ns)}/pods/${encodeURIComponent(pod.name)}/log`;
  const container = `container=${encodeURIComponent(what.container)}`;
  let endStream = (): void => {};
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopped = false;
  const again = (): void => {
    if (!stopped) timer = setTimeout(open, RETRY_MS);
  };
  const open = (): void => {
    const last = buffer.resume(pod.uid);
    const from = last === '' ? `tailLines=${TAIL}` : `sinceTime=${encodeURIComponent(`${last}Z`)}`;
    const decoder = new TextDecoder();
    let opened = false;
    endStream = client.stream(`${path}?follow=true&timestamps=true&${container}&${from}`, {
      onOpen: () => (opened = true),
      onMessage: (data) => {
        buffer.add(pod.uid, label, colour, typeof data === 'string' ? data : decoder.decode(data, { stream: true }));
        changed();
      },
      onEnd: (good) => {
        if (opened && !good) return again();
        buffer.finish(pod.uid);
        changed();
        if (!opened) void sayWhy();
      },
    });
  };
  // Why it could not be read, in the server's words.
  const sayWhy = async (): Promise<void> => {
    try {
      await client.text(`${path}?tailLines=1&${container}`);
      again();
    } catch (error) {
      if (stopped) return;
      if (!(error instanceof ApiError) || error.status === 0 || error.status >= 500) return again();
      buffer.add(`${pod.uid}?`, label, colour, `${error.message}\n`);
      changed();
    }
  };
  open();
  return () => {
    stopped = true;
    clearTimeout(timer);
    endStream();
  };
}

function Lines({ buffer, version }: { readonly buffer: LineBuffer; readonly version: number }): VNode {
  const box = useRef<HTMLDivElement>(null);
  const sticks = useRef(true);
  const [view, setView] = useState({ top: 0, height: 400 });
  const lines = buffer.lines;

  const look = (): void => {
    const element = box.current;
    if (element !== null) setView({ top: element.scrollTop, height: element.clientHeight });
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(look);
    if (box.current !== null) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null || !sticks.current) return;
    element.scrollTop = element.scrollHeight;
    look();
  }, [version]);

  const onScroll = (): void => {
    const element = box.current;
    if (element === null) return;
    sticks.current = element.scrollHeight - element.scrollTop - element.clientHeight < LINE_HEIGHT * 2;
    look();
  };
  const first = Math.max(0, Math.floor(view.top / LINE_HEIGHT) - 20);
  const last = Math.min(lines.length, first + Math.ceil(view.height / LINE_HEIGHT) + 40);
  return (
    <div class="log-box" ref={box} onScroll={onScroll} tabIndex={0} role="log" aria-label="Log lines">
      <div class="log-lines" style={{ height: `${lines.length * LINE_HEIGHT}px` }}>
        <pre style={{ transform: `translateY(${first * LINE_HEIGHT}px)` }}>
          {lines.length === 0 && <div class="log-line quiet">Nothing has been written yet.</div>}
          {lines.slice(first, last).map((line) => (
            <Line key={line.number} line={line} />
          ))}
        </pre>
      </div>
    </div>
  );
}

function Line({ line }: { readonly line: LogLine }): VNode {
  return (
    <div class="log-line">
      {line.label !== '' && <span class={`log-label label-${line.colour % 6}`}>{line.label}</span>}
      {line.text}
    </div>
  );
}
