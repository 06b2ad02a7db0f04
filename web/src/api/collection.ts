// Collection: all objects of one kind, as rows. Lists them in pages, so that no page holds the browser up, then watches;
// begins anew where a watch ended, and lists again where the server has forgotten that moment.

import type { AnyObject } from '../model/kubernetes.ts';
import { ApiError, type Client } from './client.ts';

export type State =
  | { readonly name: 'loading' }
  | { readonly name: 'live' }
  | { readonly name: 'lost'; readonly message: string; readonly status: number } // tries again
  | { readonly name: 'denied'; readonly message: string; readonly status: number };

interface ListAnswer {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly AnyObject[];
}

interface WatchFrame {
  readonly type: string;
  readonly object: AnyObject & { readonly code?: number; readonly message?: string };
}

const PAGE = 500;
const FIRST_WAIT_MS = 500,
  LONGEST_WAIT_MS = 15_000,
  DENIED_WAIT_MS = 60_000;

export class Collection<Row> {
  rows: ReadonlyMap<string, Row> = new Map();
  state: State = { name: 'loading' };

  private own = new Map<string, Row>();
  private version = '';
  private wait = FIRST_WAIT_MS;
  private endStream: (() => void) | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private stopped = false;
  private readonly mark: string;

  constructor(
    private readonly client: Client,
    private readonly path: string, // may have a query
    private readonly project: (object: AnyObject) => Row,
    private readonly onChange: () => void,
  ) {
    this.mark = path.includes('?') ? '&' : '?';
  }

  start(): void {
    void this.list();
  }

  stop(): void {
    this.stopped = true;
    this.endStream?.();
    clearTimeout(this.timer);
  }

  // At once instead of after the wait, because the server is known to be there.
  retry(): void {
    if (this.timer === undefined || this.stopped) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    void this.begin();
  }

  private begin(): void {
    if (this.version === '') void this.list();
    else this.watch();
  }

  private async list(): Promise<void> {
    const rows = new Map<string, Row>();
    let next: string | undefined;
    let version = '';
    try {
      do {
        const query = `limit=${PAGE}${next === undefined ? '' : `&continue=${encodeURIComponent(next)}`}`;
        const answer: ListAnswer = await this.client.json<ListAnswer>(this.path + this.mark + query);
        if (this.stopped) return;
        for (const object of answer.items) rows.set(object.metadata.uid, this.project(object));
        version = answer.metadata.resourceVersion;
        next = answer.metadata.continue || undefined;
      } while (next !== undefined);
    } catch (error) {
      return this.fail(error);
    }
    this.rows = this.own = rows;
    this.version = version;
    this.onChange();
    this.watch();
  }

  private watch(): void {
    const begun = Date.now();
    const query = `watch=1&allowWatchBookmarks=true&resourceVersion=${this.version}`;
    this.endStream = this.client.stream(this.path + this.mark + query, {
      onOpen: () => {
        this.wait = FIRST_WAIT_MS;
        this.setState({ name: 'live' });
      },
      onMessage: (data) => {
        if (typeof data === 'string') this.apply(JSON.parse(data) as WatchFrame);
      },
      onEnd: (good) => {
        this.endStream = undefined;
        if (good && Date.now() - begun > FIRST_WAIT_MS) this.begin();
        else void this.findOut();
      },
    });
  }

  private apply(frame: WatchFrame): void {
    if (frame.type === 'ERROR') {
      this.version = ''; // list again
      return;
    }
    this.version = frame.object.metadata.resourceVersion ?? this.version;
    if (frame.type === 'BOOKMARK') return;
    if (frame.type === 'DELETED') this.own.delete(frame.object.metadata.uid);
    else this.own.set(frame.object.metadata.uid, this.project(frame.object));
    this.onChange();
  }

  // A WebSocket that fails does not say why; an ordinary request does.
  private async findOut(): Promise<void> {
    if (this.stopped) return;
    try {
      await this.client.json(`${this.path}${this.mark}limit=1`);
      this.again({ name: 'lost', message: 'The connection was interrupted', status: 0 }, this.wait);
    } catch (error) {
      this.fail(error);
    }
  }

  private fail(error: unknown): void {
    if (this.stopped) return;
    const status = error instanceof ApiError ? error.status : 0;
    const message = error instanceof Error ? error.message : String(error);
    if (status === 410) {
      this.version = '';
      return this.again({ name: 'loading' }, FIRST_WAIT_MS);
    }
    if (status === 401 || status === 403 || status === 404) {
      this.version = '';
      this.rows = this.own = new Map();
      return this.again({ name: 'denied', message, status }, DENIED_WAIT_MS);
    }
    this.again({ name: 'lost', message, status }, this.wait);
  }

  private again(state: State, wait: number): void {
    this.setState(state);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.begin();
    }, wait);
    this.wait = Math.min(LONGEST_WAIT_MS, this.wait * 2);
  }

  private setState(state: State): void {
    this.state = state;
    this.onChange();
  }
}
