// Small parts that several views share.

import type { ComponentChildren, VNode } from 'preact';

import type { Figures } from '../model/figures.ts';
import { percent } from '../model/format.ts';
import { IDLE_PERCENT } from '../model/cost.ts';
import type { Slot } from '../model/gpus.ts';

export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'quiet';

const TONES: Readonly<Record<string, Tone>> = {
  Running: 'good',
  Succeeded: 'quiet',
  Completed: 'quiet',
  Waiting: 'warn',
  Pending: 'warn',
  Restarting: 'warn',
  Suspended: 'quiet',
  Terminating: 'quiet',
  ContainerCreating: 'warn',
  Failed: 'bad',
  Ready: 'good',
  'Not ready': 'bad',
  Cordoned: 'warn',
};

export function toneOf(state: string): Tone {
  return TONES[state] ?? (/Err|BackOff|Failed|Killed|Evicted|Unexpected|Lost/.test(state) ? 'bad' : 'warn');
}

export function Badge({ state }: { readonly state: string }): VNode {
  return <span class={`badge tone-${toneOf(state)}`}>{state}</span>;
}

export function Bar({
  part,
  label,
  tone = 'busy',
}: {
  readonly part: number;
  readonly label: string;
  readonly tone?: Tone;
}): VNode {
  const width = Math.max(0, Math.min(1, part));
  return (
    <span class="bar" role="img" aria-label={label} title={label}>
      <span class={`bar-fill fill-${tone}`} style={{ width: `${width * 100}%` }} />
    </span>
  );
}

// What a GPU does, in words.
export function describeSlot(slot: Slot, figures: Figures | undefined): string {
  const who = slot.pods.map((pod) => `${pod.ns}/${pod.name}`).join(', ');
  const parts = [`GPU ${slot.gpu.index}`, slot.gpu.unhealthy || (who === '' ? 'free' : who)];
  if (figures?.util !== undefined) parts.push(`${figures.util} % busy`);
  return parts.join(' · ');
}

export function slotClass(slot: Slot, figures: Figures | undefined): string {
  if (slot.gpu.unhealthy !== '') return 'gpu gpu-bad';
  if (slot.pods.length === 0) return 'gpu gpu-free';
  return figures?.util !== undefined && figures.util < IDLE_PERCENT ? 'gpu gpu-idle' : 'gpu gpu-used';
}

// A square for each GPU; of those that are measured the filled part is what they do.
export function GpuCells({
  slots,
  figures,
}: {
  readonly slots: readonly Slot[];
  readonly figures: ReadonlyMap<string, Figures>;
}): VNode {
  return (
    <span class="gpus">
      {slots.map((slot) => {
        const own = figures.get(slot.gpu.id);
        const share = slot.pods.length === 0 ? 0 : own?.util === undefined ? shareHeld(slot) : own.util / 100;
        const words = describeSlot(slot, own);
        return (
          <span key={slot.gpu.id} class={slotClass(slot, own)} role="img" aria-label={words} title={words}>
            <span class="gpu-fill" style={{ height: percent(share).replace(' ', '') }} />
          </span>
        );
      })}
    </span>
  );
}

function shareHeld(slot: Slot): number {
  const held = slot.pods.reduce((all, pod) => all + (pod.gpus < 1 ? pod.gpus : 1), 0);
  return Math.min(1, held);
}

export function Page({
  title,
  children,
  aside,
}: {
  readonly title: ComponentChildren;
  readonly children: ComponentChildren;
  readonly aside?: ComponentChildren;
}): VNode {
  return (
    <main class="page">
      <header class="page-head">
        <h1>{title}</h1>
        {aside}
      </header>
      {children}
    </main>
  );
}

export function Filter({
  value,
  onInput,
  label,
}: {
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly label: string;
}): VNode {
  return (
    <input
      class="filter"
      type="search"
      placeholder={label}
      aria-label={label}
      value={value}
      onInput={(event) => onInput(event.currentTarget.value)}
    />
  );
}

export function matches(filter: string, ...words: readonly string[]): boolean {
  const wanted = filter.trim().toLowerCase();
  return wanted === '' || words.some((word) => word.toLowerCase().includes(wanted));
}
