// One node: its GPUs, what they do, and who has them; its pods.

import type { VNode } from 'preact';

import { bytes, duration, short } from '../model/format.ts';
import type { NodeUse, Slot } from '../model/gpus.ts';
import type { PodRow } from '../model/pod.ts';
import type { Figures } from '../model/figures.ts';
import { useCluster, useNow } from './hooks.ts';
import { stateOf } from './nodes.tsx';
import { Badge, Bar, GpuCells, Page } from './parts.tsx';

export function NodePage({ name }: { readonly name: string }): VNode {
  const cluster = useCluster();
  const now = useNow();
  const use = cluster.uses.find((one) => one.node.name === name);
  const title = (
    <>
      <a class="crumb" href="#/nodes">
        Nodes
      </a>{' '}
      {name}
    </>
  );
  if (use === undefined) {
    return (
      <Page title={title}>
        {cluster.nodes.state.name === 'loading' ? (
          <p class="empty">Loading …</p>
        ) : (
          <p class="empty">There is no node of this name (any more).</p>
        )}
      </Page>
    );
  }
  const usage = cluster.usage.get(name);
  const pods = [...cluster.pods.rows.values()]
    .filter((pod) => pod.node === name && !pod.over)
    .sort((a, b) => a.name.localeCompare(b.name));
  return (
    <Page title={title} aside={<Badge state={stateOf(use)} />}>
      {use.node.trouble !== '' && <p class="notice tone-bad">{use.node.trouble}</p>}
      <dl class="facts">
        <Fact name="CPU" value={amounts(short, use.cpu, use.node.cpu, usage?.cpu)} />
        <Fact name="Memory" value={amounts(bytes, use.memory, use.node.memory, usage?.memory)} />
        <Fact name="Age" value={duration(now - use.node.created)} />
        {use.node.taints.length > 0 && <Fact name="Taints" value={use.node.taints.join(', ')} />}
      </dl>
      <div class="scroll">
        <Gpus use={use} figures={cluster.figures} />
        <Pods pods={pods} now={now} />
      </div>
    </Page>
  );
}

function amounts(show: (amount: number) => string, asked: number, all: number, used: number | undefined): string {
  return `${show(asked)} of ${show(all)} requested${used === undefined ? '' : `, ${show(used)} used`}`;
}

export function Fact({ name, value }: { readonly name: string; readonly value: string }): VNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Gpus({ use, figures }: { readonly use: NodeUse; readonly figures: ReadonlyMap<string, Figures> }): VNode {
  if (use.slots.length === 0) return <p class="empty">This node offers no GPUs.</p>;
  return (
    <section>
      <h2>GPUs</h2>
      <div class="table-box">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">GPU</th>
              <th scope="col">Held by</th>
              <th scope="col">Busy</th>
              <th scope="col" class="wide">
                Memory
              </th>
              <th scope="col" class="wide number">
                Temperature
              </th>
              <th scope="col" class="wide number">
                Power
              </th>
            </tr>
          </thead>
          <tbody>
            {use.slots.map((slot) => (
              <GpuLine key={slot.gpu.id} slot={slot} figures={figures} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function GpuLine({ slot, figures }: { readonly slot: Slot; readonly figures: ReadonlyMap<string, Figures> }): VNode {
  const own = figures.get(slot.gpu.id);
  const memory = slot.gpu.memory / 2 ** 20;
  return (
    <tr>
      <td title={slot.gpu.id}>
        <GpuCells slots={[slot]} figures={figures} /> {slot.gpu.index} <small>{slot.gpu.model}</small>
      </td>
      <td>
        {slot.gpu.unhealthy !== '' && <span class="tone-bad">{slot.gpu.unhealthy} </span>}
        {slot.pods.length === 0 ? (
          <span class="quiet">{slot.gpu.unhealthy === '' ? 'free' : ''}</span>
        ) : (
          slot.pods.map((pod) => <PodLink key={pod.uid} pod={pod} />)
        )}
      </td>
      <td>
        {own?.util === undefined ? (
          <span class="quiet">–</span>
        ) : (
          <span class="with-bar">
            <Bar part={own.util / 100} label={`${own.util} % busy`} />
            {`${own.util} %`}
          </span>
        )}
      </td>
      <td class="wide">
        {own?.memoryUsed === undefined || memory === 0 ? (
          <span class="quiet">–</span>
        ) : (
          `${bytes(own.memoryUsed * 2 ** 20)} of ${bytes(slot.gpu.memory)}`
        )}
      </td>
      <td class="wide number">
        {own?.temperature === undefined ? <span class="quiet">–</span> : `${own.temperature} °C`}
      </td>
      <td class="wide number">
        {own?.power === undefined ? <span class="quiet">–</span> : `${Math.round(own.power)} W`}
      </td>
    </tr>
  );
}

export function PodLink({ pod }: { readonly pod: PodRow }): VNode {
  return (
    <a class="pod-link" href={`#/pods/${encodeURIComponent(pod.ns)}/${encodeURIComponent(pod.name)}`}>
      <span class="quiet">{pod.ns}/</span>
      {pod.name}
      {pod.gpus < 1 && pod.gpus > 0 ? <small>{` ${Math.round(pod.gpus * 1000)}m`}</small> : null}
    </a>
  );
}

const MAX_PODS = 500;

function Pods({ pods, now }: { readonly pods: readonly PodRow[]; readonly now: number }): VNode {
  if (pods.length === 0) return <p class="empty">No pod runs here.</p>;
  return (
    <section>
      <h2>
        Pods <small>{pods.length}</small>
      </h2>
      <div class="table-box">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">Pod</th>
              <th scope="col">State</th>
              <th scope="col" class="number">
                GPUs
              </th>
              <th scope="col" class="number wide">
                CPU
              </th>
              <th scope="col" class="number wide">
                Memory
              </th>
              <th scope="col" class="number">
                Age
              </th>
            </tr>
          </thead>
          <tbody>
            {pods.slice(0, MAX_PODS).map((pod) => (
              <tr key={pod.uid}>
                <td>
                  <PodLink pod={pod} />
                </td>
                <td>
                  <Badge state={pod.state} />
                </td>
                <td class="number">{pod.gpus === 0 ? '' : short(pod.gpus)}</td>
                <td class="number wide">{short(pod.cpu)}</td>
                <td class="number wide">{bytes(pod.memory)}</td>
                <td class="number">{duration(now - pod.created)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
