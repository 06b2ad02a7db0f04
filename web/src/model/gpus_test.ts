import assert from 'node:assert/strict';
import { test } from 'node:test';

import { nodeUses } from './gpus.ts';
import { projectNode } from './node.ts';
import { projectPod } from './pod.ts';
import { assigned, gpuContainer, nodeObject, podObject } from './test_objects.ts';

const holder = (name: string, gpus: number, ids: string[], parts: object = {}) =>
  projectPod(
    podObject(name, {
      metadata: { annotations: ids.length === 0 ? {} : assigned('main', ids) },
      spec: { nodeName: 'n', containers: [gpuContainer(gpus)] },
      status: { phase: 'Running' },
      ...parts,
    }),
  );

const names = (pods: ReturnType<typeof holder>[]): string[][] => {
  const [use] = nodeUses([projectNode(nodeObject('n', ['G0', 'G1', 'G2']))], pods);
  return use?.slots.map((slot) => slot.pods.map((pod) => pod.name)) ?? [];
};

test('each GPU has the pods that say so', () => {
  assert.deepEqual(names([holder('a', 1, ['G2']), holder('b', 1, ['G0'])]), [['b'], [], ['a']]);
});

test('pods that share one have it together', () => {
  assert.deepEqual(names([holder('a', 0.3, ['G1']), holder('b', 0.3, ['G1'])]), [[], ['a', 'b'], []]);
});

test('who does not say which has some that nobody has', () => {
  assert.deepEqual(names([holder('named', 1, ['G0']), holder('unnamed', 2, [])]), [
    ['named'],
    ['unnamed'],
    ['unnamed'],
  ]);
});

test('who has ended has none', () => {
  assert.deepEqual(names([holder('a', 1, ['G0'], { status: { phase: 'Succeeded' } })]), [[], [], []]);
});

test('nodes are in the order of their numbers', () => {
  const nodes = ['n10', 'n2', 'n1'].map((name) => projectNode(nodeObject(name, [])));
  assert.deepEqual(
    nodeUses(nodes, []).map((use) => use.node.name),
    ['n1', 'n2', 'n10'],
  );
});
