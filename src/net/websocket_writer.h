// src/net/websocket_writer.h
//
// MakeWebSocketWriter: a ResponseWriter that turns a stream into messages of a WebSocket, as
// Kubernetes' API servers do for watches and logs: a browser has six HTTP/1.1 connections for all
// its tabs, and hundreds of WebSockets. JSON becomes one text message for each line, anything else
// binary messages. What is sent whole, such as an error, stays HTTP.
//
// Life cycle: as any ResponseWriter; holds the one that it wraps.
// Thread:     the handler's loop thread.

#pragma once

#include "base/status.h"
#include "net/http.h"

namespace muster::net {

// BadRequest if the handshake is malformed. REQUIRES: IsWebSocketRequest(request).
Result<ResponseWriterPtr> MakeWebSocketWriter(const Request& request, ResponseWriterPtr inner);

// Browsers cannot give a WebSocket an Authorization header. As with upstream's servers the token
// may come as a protocol, "base64url.bearer.authorization.k8s.io.TOKEN": becomes the header, if
// there is none and another protocol is offered; and is no protocol any more in any case.
void TakeTokenFromProtocols(Request& request);

// A browser says which page opens a WebSocket, and opens it for any page, with the certificate that
// its user has. False: the page is from elsewhere. True for who is no browser.
bool IsSameOrigin(const Request& request);

}  // namespace muster::net
