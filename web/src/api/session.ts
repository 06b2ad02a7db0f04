// Who the page acts for: a bearer token, kept for this tab only. It comes in the fragment of the URL, which browsers send
// to nobody, and is taken out of the address at once.

const KEY = 'muster.token';

export interface Identity {
  readonly name: string;
  readonly namespace: string; // of a service account, else ''
  readonly expires: number; // 0: not said
}

const NOBODY: Identity = { name: '', namespace: '', expires: 0 };

export function takeToken(location: Location, history: History, storage: Storage): string {
  const match = /^#token=([A-Za-z0-9._~+/=-]+)$/.exec(location.hash);
  if (match?.[1] !== undefined) {
    storage.setItem(KEY, match[1]);
    history.replaceState(null, '', `${location.pathname}#/nodes`);
  }
  return storage.getItem(KEY) ?? '';
}

export function keepToken(token: string, storage: Storage): void {
  if (token === '') storage.removeItem(KEY);
  else storage.setItem(KEY, token);
}

// What a service account's token says of itself; nothing is verified, the server does that.
export function identityOf(token: string): Identity {
  const part = token.split('.')[1];
  if (part === undefined) return NOBODY;
  try {
    const claims = JSON.parse(atob(part.replaceAll('-', '+').replaceAll('_', '/'))) as { sub?: unknown; exp?: unknown };
    const name =
      typeof claims.sub === 'string' ? claims.sub.replace(/^system:serviceaccount:/, '').replace(':', '/') : '';
    const namespace = name.includes('/') ? (name.split('/')[0] ?? '') : '';
    return { name, namespace, expires: typeof claims.exp === 'number' ? claims.exp * 1000 : 0 };
  } catch {
    return NOBODY;
  }
}
