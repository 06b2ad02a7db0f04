#include "agent/probes/handler_action.h"

#include "base/bounded_seconds.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

constexpr int kMaxPort = 65'535;
constexpr std::string_view kHexDigits = "0123456789ABCDEF";

// By number, by the name of one of the container's ports, or as text with a number.
Result<uint16_t> PortOf(const json::Value& port, const json::Value& container) {
  int64_t number = port.IsString() ? 0 : port.AsInt();
  if (port.IsString()) {
    const std::string_view name = port.AsString();
    for (const json::Value& one : container["ports"].items()) {
      if (one["name"].AsString() == name) number = one["containerPort"].AsInt();
    }
    if (number == 0) {
      const auto parsed = ParseInt(name);
      if (!parsed) return Error(Reason::kInvalid, "couldn't find port: {}", name);
      number = *parsed;
    }
  }
  if (number <= 0 || number > kMaxPort)
    return Error(Reason::kInvalid, "invalid port number: {}", number);
  return static_cast<uint16_t>(number);
}

// As Go writes what is no part of a URL: only what would break the request line.
std::string PathOf(std::string_view path) {
  std::string out = path.starts_with('/') ? "" : "/";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += '%';
      out += kHexDigits[byte >> 4];
      out += kHexDigits[byte & 15];
    }
  }
  return out;
}

Result<HandlerAction> HttpAction(const json::Value& get, const json::Value& container,
                                 const std::string& pod_ip) {
  HandlerAction action;
  action.kind = HandlerAction::Kind::kHttp;
  action.host = get["host"].AsString().empty() ? pod_ip : get["host"].Str();
  ASSIGN_OR_RETURN(action.port, PortOf(get["port"], container));
  action.tls = get["scheme"].AsString() == "HTTPS";
  action.path = PathOf(get["path"].AsString());
  for (const json::Value& header : get["httpHeaders"].items())
    action.headers.emplace_back(header["name"].Str(), header["value"].Str());
  return action;
}

HandlerAction ExecAction(const json::Value& exec) {
  HandlerAction action;
  action.command = json::ToStrings(exec["command"]);
  return action;
}

}  // namespace

Result<HandlerAction> ProbeActionOf(const json::Value& handler, const json::Value& container,
                                    const std::string& pod_ip) {
  if (handler.Has("exec")) return ExecAction(handler["exec"]);
  if (handler.Has("httpGet")) return HttpAction(handler["httpGet"], container, pod_ip);
  HandlerAction action;
  if (handler.Has("tcpSocket")) {
    const json::Value& tcp = handler["tcpSocket"];
    action.kind = HandlerAction::Kind::kTcp;
    action.host = tcp["host"].AsString().empty() ? pod_ip : tcp["host"].Str();
    ASSIGN_OR_RETURN(action.port, PortOf(tcp["port"], container));
    return action;
  }
  if (!handler.Has("grpc")) return Error(Reason::kInvalid, "missing probe handler");
  action.kind = HandlerAction::Kind::kGrpc;
  action.host = pod_ip;
  ASSIGN_OR_RETURN(action.port, PortOf(handler["grpc"]["port"], container));
  action.service = handler["grpc"]["service"].Str();
  return action;
}

Result<HandlerAction> HookActionOf(const json::Value& handler, const json::Value& container,
                                   const std::string& pod_ip) {
  if (handler.Has("exec")) return ExecAction(handler["exec"]);
  if (handler.Has("httpGet")) {
    ASSIGN_OR_RETURN(HandlerAction action, HttpAction(handler["httpGet"], container, pod_ip));
    action.any_status = true;
    return action;
  }
  if (!handler.Has("sleep")) return Error(Reason::kInvalid, "invalid handler");
  HandlerAction action;
  action.kind = HandlerAction::Kind::kSleep;
  action.sleep = BoundedSeconds(handler["sleep"]["seconds"].AsInt());
  return action;
}

std::string UrlOf(const HandlerAction& action) {
  return fmt::format("{}://{}:{}{}", action.tls ? "https" : "http", action.host, action.port,
                     action.path);
}

}  // namespace muster::agent
