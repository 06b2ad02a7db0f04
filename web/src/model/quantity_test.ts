import assert from 'node:assert/strict';
import { test } from 'node:test';

import { quantity } from './quantity.ts';

test('quantities are numbers', () => {
  for (const [text, value] of [
    ['500m', 0.5],
    ['2', 2],
    ['1Gi', 2 ** 30],
    ['1.5Ki', 1536],
    ['1e3', 1000],
    ['12M', 12e6],
    ['-3', -3],
    ['250u', 0.00025],
  ] as const)
    assert.equal(quantity(text), value, text);
  assert.equal(quantity(4), 4);
});

test('what is no quantity counts as nothing', () => {
  for (const text of ['', 'x', '1Zi', '1 Gi', '..', undefined]) assert.equal(quantity(text), 0);
});
