// The frame around all pages: where one can go, for whom the page acts, and whether the server is there.

import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { Cluster } from '../api/cluster.ts';
import { Client } from '../api/client.ts';
import { identityOf, keepToken, takeToken } from '../api/session.ts';
import { CostPage } from './cost.tsx';
import { ClusterContext, useCluster } from './hooks.ts';
import { JobPage, PodPage } from './job.tsx';
import { JobsPage } from './jobs.tsx';
import { NodePage } from './node.tsx';
import { NodesPage } from './nodes.tsx';
import { QueuePage } from './queue.tsx';
import { type Route, useRoute } from './route.ts';

export function App({ first }: { readonly first: string }): VNode {
  const [token, setToken] = useState(first);
  const [scope, setScope] = useState('');
  const [cluster, setCluster] = useState<Cluster | undefined>(undefined);
  useEffect(() => {
    if (token === '') return;
    const made = new Cluster(new Client(token), scope);
    made.start();
    setCluster(made);
    // Who may not look at everything may look at the namespace of his account.
    const unsubscribe = made.subscribe(() => {
      const { state } = made.pods;
      if (state.name === 'denied' && state.status === 403 && scope === '') setScope(identityOf(token).namespace);
    });
    return () => {
      unsubscribe();
      made.stop();
    };
  }, [token, scope]);
  // Somebody opens a new link of `muster dashboard` in a tab that is open already.
  useEffect(() => {
    const onChange = (): void => {
      const taken = takeToken(window.location, window.history, sessionStorage);
      if (taken !== token) change(taken);
    };
    window.addEventListener('hashchange', onChange);
    return () => window.removeEventListener('hashchange', onChange);
  }, [token]);
  const change = (wanted: string): void => {
    keepToken(wanted, sessionStorage);
    setScope('');
    setToken(wanted);
    if (wanted === '') setCluster(undefined);
  };
  if (token === '') return <AskToken onToken={change} why="" />;
  if (cluster === undefined) return <div class="frame" />;
  return (
    <ClusterContext.Provider value={cluster}>
      <Frame token={token} onToken={change} />
    </ClusterContext.Provider>
  );
}

function AskToken({ onToken, why }: { readonly onToken: (token: string) => void; readonly why: string }): VNode {
  const [text, setText] = useState('');
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    if (text.trim() !== '') onToken(text.trim());
  };
  return (
    <main class="gate">
      <Logo />
      <h1>Whose eyes?</h1>
      {why !== '' && (
        <p class="notice tone-bad" role="alert">
          {why}
        </p>
      )}
      <p>
        The dashboard sees what its token may see. In a terminal, <code>muster dashboard</code> opens it with one that
        may look at everything but secrets, and change nothing.
      </p>
      <form onSubmit={onSubmit}>
        <label for="token">Or paste a bearer token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit">Open</button>
      </form>
      <p class="quiet">It stays in this tab, and goes when the tab is closed.</p>
    </main>
  );
}

function Logo(): VNode {
  return (
    <a class="logo" href="#/nodes" aria-label="muster, the first page">
      <img src="./icon.svg" alt="" width="20" height="20" /> muster
    </a>
  );
}

function Frame({ token, onToken }: { readonly token: string; readonly onToken: (token: string) => void }): VNode {
  const cluster = useCluster();
  const route = useRoute();
  const [ns, setNs] = useState('');
  useEffect(() => {
    document.title = `${titleOf(route)} · muster`;
  }, [route]);
  const { state } = cluster;
  if (state.name === 'denied' && state.status === 401) {
    return (
      <AskToken
        onToken={onToken}
        why="The server does not accept the token: it may have expired, or belong to another cluster."
      />
    );
  }
  const waiting = cluster.waiting.length;
  return (
    <div class="frame">
      <a
        class="skip"
        href="#content"
        onClick={(event) => {
          event.preventDefault();
          document.querySelector<HTMLElement>('.list-box a, main a')?.focus();
        }}
      >
        To the content
      </a>
      <nav class="top" aria-label="Pages">
        <Logo />
        <Tab href="#/nodes" here={route.page === 'nodes' || route.page === 'node'}>
          Nodes
        </Tab>
        <Tab href="#/queue" here={route.page === 'queue'}>
          Queue{waiting > 0 && <span class="count">{waiting}</span>}
        </Tab>
        <Tab href="#/jobs" here={route.page === 'jobs' || route.page === 'job' || route.page === 'pod'}>
          Jobs
        </Tab>
        <Tab href="#/cost" here={route.page === 'cost'}>
          Cost
        </Tab>
        <span class="spacer" />
        <select aria-label="Namespace" value={ns} onChange={(event) => setNs(event.currentTarget.value)}>
          <option value="">{cluster.scope || 'All namespaces'}</option>
          {cluster.scope === '' &&
            cluster.namespaces.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
        </select>
        <Who token={token} onLeave={() => onToken('')} />
      </nav>
      <Connection />
      <div id="content" class="content">
        {contentOf(route, ns)}
      </div>
    </div>
  );
}

function Tab({
  href,
  here,
  children,
}: {
  readonly href: string;
  readonly here: boolean;
  readonly children: ComponentChildren;
}): VNode {
  return (
    <a class={here ? 'tab here' : 'tab'} href={href} aria-current={here ? 'page' : undefined}>
      {children}
    </a>
  );
}

function Who({ token, onLeave }: { readonly token: string; readonly onLeave: () => void }): VNode {
  const { name, expires } = identityOf(token);
  const until = expires === 0 ? '' : `, until ${new Date(expires).toLocaleString()}`;
  return (
    <button
      type="button"
      class="who"
      onClick={onLeave}
      title={`Acts as ${name || 'the owner of the token'}${until}. Click to use another token.`}
    >
      {name.split('/').pop() || 'token'}
    </button>
  );
}

// Takes no room: what is below it does not move when it comes and goes.
function Connection(): VNode | null {
  const cluster = useCluster();
  const { state } = cluster;
  if (state.name === 'lost') {
    return (
      <div class="banner" role="status">
        {state.message}. What you see is as it was; trying again …
        <button type="button" onClick={() => cluster.retry()}>
          Now
        </button>
      </div>
    );
  }
  if (state.name === 'denied')
    return (
      <div class="banner" role="status">
        {state.message}
      </div>
    );
  return null;
}

function titleOf(route: Route): string {
  if (route.page === 'node' || route.page === 'job' || route.page === 'pod') return route.name;
  return route.page === 'nodes' ? 'Nodes' : route.page === 'queue' ? 'Queue' : route.page === 'jobs' ? 'Jobs' : 'Cost';
}

function contentOf(route: Route, ns: string): VNode {
  switch (route.page) {
    case 'nodes':
      return <NodesPage />;
    case 'node':
      return <NodePage name={route.name} />;
    case 'queue':
      return <QueuePage ns={ns} />;
    case 'jobs':
      return <JobsPage ns={ns} />;
    case 'job':
      return <JobPage ns={route.ns} kind={route.kind} name={route.name} />;
    case 'pod':
      return <PodPage ns={route.ns} name={route.name} />;
    case 'cost':
      return <CostPage ns={ns} />;
  }
}
