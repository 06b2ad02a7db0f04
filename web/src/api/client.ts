// Requests to the Kubernetes API of the server that served the page.

export class ApiError extends Error {
  constructor(
    readonly status: number, // 0: there was no answer
    message: string,
  ) {
    super(message);
  }
}

// The protocol by which a WebSocket brings a token, as Kubernetes defines it, and one to agree on.
const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.';
const PROTOCOL = 'binary.k8s.io';

export interface StreamCallbacks {
  readonly onOpen?: () => void;
  readonly onMessage: (data: string | ArrayBuffer) => void;
  // good: the server ended it in good order.
  readonly onEnd: (good: boolean) => void;
}

export class Client {
  constructor(private readonly token: string) {}

  async text(path: string, accept = 'text/plain', signal?: AbortSignal): Promise<string> {
    return (await this.fetch(path, accept, signal)).text();
  }

  async json<T>(path: string, accept = 'application/json', signal?: AbortSignal): Promise<T> {
    return (await (await this.fetch(path, accept, signal)).json()) as T;
  }

  // Returns what ends it; no callback runs afterwards.
  stream(path: string, callbacks: StreamCallbacks): () => void {
    const url = new URL(path, window.location.origin);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const protocols = this.token === '' ? [PROTOCOL] : [TOKEN_PROTOCOL + base64url(this.token), PROTOCOL];
    const socket = new WebSocket(url, protocols);
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => callbacks.onOpen?.();
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => callbacks.onMessage(event.data);
    socket.onclose = (event) => callbacks.onEnd(event.code === 1000);
    return () => {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    };
  }

  private async fetch(path: string, accept: string, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { Accept: accept };
    if (this.token !== '') headers['Authorization'] = `Bearer ${this.token}`;
    let response: Response;
    try {
      // Without credentials: neither cookies nor a client certificate, only the token counts.
      response = await fetch(path, {
        headers,
        cache: 'no-store',
        credentials: 'omit',
        redirect: 'error',
        signal: signal ?? null,
      });
    } catch (error) {
      if (error instanceof DOMException && error.name === 'AbortError') throw error;
      throw new ApiError(0, 'The server does not answer');
    }
    if (response.ok) return response;
    throw new ApiError(response.status, await messageOf(response));
  }
}

async function messageOf(response: Response): Promise<string> {
  const body = await response.text();
  try {
    const message = (JSON.parse(body) as { message?: unknown }).message;
    if (typeof message === 'string' && message !== '') return message;
  } catch {
    // Not a Status of Kubernetes.
  }
  return body.slice(0, 300) || response.statusText;
}

function base64url(text: string): string {
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
