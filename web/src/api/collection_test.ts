import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';

import type { AnyObject } from '../model/kubernetes.ts';
import { ApiError, type Client, type StreamCallbacks } from './client.ts';
import { Collection } from './collection.ts';

const item = (name: string, resourceVersion = '1'): AnyObject => ({ metadata: { name, uid: name, resourceVersion } });

// A server whose answers the test gives.
class FakeServer {
  readonly asked: string[] = [];
  readonly streams: { path: string; callbacks: StreamCallbacks; ended: boolean }[] = [];
  answers: (object | ApiError)[] = [];

  readonly client = {
    json: async (path: string) => {
      this.asked.push(path);
      const answer = this.answers.shift() ?? new ApiError(0, 'The server does not answer');
      if (answer instanceof ApiError) throw answer;
      return answer;
    },
    stream: (path: string, callbacks: StreamCallbacks) => {
      const stream = { path, callbacks, ended: false };
      this.streams.push(stream);
      return () => (stream.ended = true);
    },
  } as unknown as Client;

  get stream(): StreamCallbacks {
    return this.streams[this.streams.length - 1]!.callbacks;
  }
  send(type: string, object: AnyObject): void {
    this.stream.onMessage(JSON.stringify({ type, object }));
  }
}

// Timers that only tick() moves.
const real = { set: globalThis.setTimeout, clear: globalThis.clearTimeout };
let timers: { at: number; run: () => void }[] = [];
let now = 0;
beforeEach(() => {
  timers = [];
  now = 0;
  globalThis.setTimeout = ((run: () => void, wait: number) => {
    const timer = { at: now + wait, run };
    timers.push(timer);
    return timer;
  }) as unknown as typeof setTimeout;
  globalThis.clearTimeout = ((timer: unknown) =>
    (timers = timers.filter((one) => one !== timer))) as unknown as typeof clearTimeout;
});
afterEach(() => {
  globalThis.setTimeout = real.set;
  globalThis.clearTimeout = real.clear;
});
function tick(wait: number): void {
  now += wait;
  const due = timers.filter((one) => one.at <= now);
  timers = timers.filter((one) => one.at > now);
  for (const one of due) one.run();
}

const settle = async (): Promise<void> => {
  for (let i = 0; i < 10; ++i) await Promise.resolve();
};

async function started(server: FakeServer): Promise<Collection<string>> {
  const collection = new Collection(
    server.client,
    '/api/v1/pods',
    (object) => object.metadata.name,
    () => {},
  );
  collection.start();
  await settle();
  return collection;
}

test('lists in pages, then watches from there', async () => {
  const server = new FakeServer();
  server.answers = [
    { metadata: { resourceVersion: '7', continue: 'more+' }, items: [item('a')] },
    { metadata: { resourceVersion: '7' }, items: [item('b')] },
  ];
  const collection = await started(server);
  assert.deepEqual(server.asked, ['/api/v1/pods?limit=500', '/api/v1/pods?limit=500&continue=more%2B']);
  assert.equal(server.streams[0]?.path, '/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=7');
  assert.equal(collection.state.name, 'loading');
  server.stream.onOpen?.();
  assert.equal(collection.state.name, 'live');
  server.send('ADDED', item('c', '8'));
  server.send('DELETED', item('a', '9'));
  server.send('BOOKMARK', { metadata: { name: '', uid: '', resourceVersion: '20' } });
  assert.deepEqual([...collection.rows.values()], ['b', 'c']);
  collection.stop();
  assert.equal(server.streams[0]?.ended, true);
});

test('a watch that was interrupted goes on where it was', async () => {
  const server = new FakeServer();
  server.answers = [
    { metadata: { resourceVersion: '7' }, items: [item('a')] },
    new ApiError(0, 'The server does not answer'),
  ];
  const collection = await started(server);
  server.stream.onOpen?.();
  server.send('ADDED', item('b', '9'));
  server.stream.onEnd(false);
  await settle();
  assert.deepEqual(collection.state, { name: 'lost', message: 'The server does not answer', status: 0 });
  assert.equal(collection.rows.size, 2, 'what was seen stays in sight');
  tick(500);
  await settle();
  assert.equal(server.streams.length, 2);
  assert.match(server.streams[1]?.path ?? '', /resourceVersion=9$/);
  server.stream.onOpen?.();
  assert.equal(collection.state.name, 'live');
});

test('lists again when the server has forgotten the moment', async () => {
  const server = new FakeServer();
  server.answers = [
    { metadata: { resourceVersion: '7' }, items: [item('a')] },
    {},
    { metadata: { resourceVersion: '50' }, items: [item('z')] },
  ];
  const collection = await started(server);
  server.stream.onOpen?.();
  server.stream.onMessage(JSON.stringify({ type: 'ERROR', object: { code: 410, metadata: {} } }));
  server.stream.onEnd(true);
  await settle();
  tick(500);
  await settle();
  assert.deepEqual([...collection.rows.values()], ['z']);
  assert.match(server.streams[1]?.path ?? '', /resourceVersion=50$/);
  collection.stop();
});

test('who may not look is told so, and sees nothing', async () => {
  const server = new FakeServer();
  server.answers = [new ApiError(403, 'pods is forbidden')];
  const collection = await started(server);
  assert.deepEqual(collection.state, { name: 'denied', message: 'pods is forbidden', status: 403 });
  collection.stop();
});

test('a path with a query keeps it', async () => {
  const server = new FakeServer();
  server.answers = [{ metadata: { resourceVersion: '1' }, items: [] }];
  const collection = new Collection(
    server.client,
    '/api/v1/events?fieldSelector=x',
    (object) => object,
    () => {},
  );
  collection.start();
  await settle();
  assert.equal(server.asked[0], '/api/v1/events?fieldSelector=x&limit=500');
  assert.match(server.streams[0]?.path ?? '', /fieldSelector=x&watch=1/);
  collection.stop();
});
