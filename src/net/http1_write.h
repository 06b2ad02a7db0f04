// src/net/http1_write.h
//
// Internal to net. Heads of HTTP/1.1 messages as text. Control characters in names and values
// become spaces: no value that a handler passes on can split a message.

#pragma once

#include <string>
#include <string_view>

#include "base/time.h"
#include "net/http.h"

namespace muster::net {

void AppendHeader(std::string& out, std::string_view name, std::string_view value);
// Status line and headers, without the empty line. Date is added; hop-by-hop headers (Connection,
// Transfer-Encoding) are the connection's business and left out, unless `upgrade`.
void AppendResponseHead(std::string& out, int status, const Headers& headers, bool upgrade);
void AppendRequestHead(std::string& out, const Request& request);
void AppendChunkHead(std::string& out, size_t size);
std::string HttpDate(Time time);  // "Sun, 06 Nov 1994 08:49:37 GMT"

}  // namespace muster::net
