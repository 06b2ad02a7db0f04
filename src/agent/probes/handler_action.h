// src/agent/probes/handler_action.h
//
// HandlerAction: what a probe or a lifecycle hook asks for, with ports and hosts found.
//
// Thread:     any (values, pure).
// Source:     the kubelet's prober and lifecycle handlers.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "json/value.h"

namespace muster::agent {

struct HandlerAction {
  enum class Kind : uint8_t { kExec, kHttp, kTcp, kGrpc, kSleep };

  Kind kind = Kind::kExec;
  std::vector<std::string> command;  // exec
  std::string host;                  // http, tcp, grpc: a name or an address
  uint16_t port = 0;
  bool tls = false;  // http, without a look at the certificate
  std::string path;  // http: "/healthz?full=1"
  std::vector<std::pair<std::string, std::string>> headers;  // http
  bool any_status = false;                                   // http: every answer is a success
  std::string service;                                       // grpc
  Duration sleep{};
};

// Where `handler` (a Probe) of `container` leads. Invalid: it names a port that is not there.
Result<HandlerAction> ProbeActionOf(const json::Value& handler, const json::Value& container,
                                    const std::string& pod_ip);
// The same for a postStart or preStop hook, which are happy with every HTTP answer and know no
// sockets.
Result<HandlerAction> HookActionOf(const json::Value& handler, const json::Value& container,
                                   const std::string& pod_ip);

// "http://10.42.0.2:80/healthz"
std::string UrlOf(const HandlerAction& action);

}  // namespace muster::agent
