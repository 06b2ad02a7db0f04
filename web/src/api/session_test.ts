import assert from 'node:assert/strict';
import { test } from 'node:test';

import { identityOf, takeToken } from './session.ts';

class FakeStorage {
  private readonly items = new Map<string, string>();
  getItem(key: string): string | null {
    return this.items.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    this.items.set(key, value);
  }
  removeItem(key: string): void {
    this.items.delete(key);
  }
}

const visit = (hash: string, storage = new FakeStorage()): { token: string; address: string } => {
  let address = '';
  const history = { replaceState: (_: unknown, __: string, url: string) => (address = url) };
  const token = takeToken(
    { hash, pathname: '/dashboard/' } as Location,
    history as unknown as History,
    storage as unknown as Storage,
  );
  return { token, address };
};

test('the token leaves the address and stays in the tab', () => {
  const storage = new FakeStorage();
  assert.deepEqual(visit('#token=a.b-c_d', storage), { token: 'a.b-c_d', address: '/dashboard/#/nodes' });
  assert.deepEqual(visit('#/jobs', storage), { token: 'a.b-c_d', address: '' });
});

test('other fragments are no tokens', () => {
  assert.equal(visit('#/nodes').token, '');
  assert.equal(visit('#token=<script>').token, '');
});

test('who a token is for', () => {
  const claims = btoa(
    JSON.stringify({ sub: 'system:serviceaccount:kube-system:muster-dashboard', exp: 1_800_000_000 }),
  ).replaceAll('=', '');
  assert.deepEqual(identityOf(`x.${claims}.y`), {
    name: 'kube-system/muster-dashboard',
    namespace: 'kube-system',
    expires: 1_800_000_000_000,
  });
  assert.deepEqual(identityOf('opaque'), { name: '', namespace: '', expires: 0 });
  assert.deepEqual(identityOf('x.!.y'), { name: '', namespace: '', expires: 0 });
});
