// GET or POST pods/NAME/exec: the upgraded connection is joined, byte for byte, with one to the
// node agent.

#include "apiserver/admission/admission.h"
#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/object_writer.h"
#include "apiserver/pods/pod_location.h"
#include "base/strings.h"
#include "net/splice.h"
#include "schema/pod_phase.h"

namespace muster::apiserver {
namespace {

net::Request NodeRequest(const Call& call, const PodLocation& location) {
  const RequestInfo& info = call.info();
  net::Query query;
  for (const auto& [name, value] : info.query.list()) {
    if (name != "container") query.Add(name, value);
  }
  net::Request request;
  request.method = info.method;
  request.target =
      fmt::format("/exec/{}/{}/{}?{}", PercentEncode(info.ns), PercentEncode(info.name),
                  PercentEncode(location.container), query.Encode());
  for (const auto& [name, value] : call.request().headers.list()) {
    const std::string lower = ToLower(name);
    if (lower == "upgrade" || lower.starts_with("sec-websocket-") ||
        lower.starts_with("x-stream-protocol")) {
      request.headers.Add(name, value);
    }
  }
  return request;
}

void OnNodeAnswer(Loop& loop, const CallPtr& call, const std::string& node,
                  Result<NodeUpgrade> upgrade) {
  if (!upgrade)
    return call->Fail(upgrade.error().WithPrefix(fmt::format("cannot reach node {:?}: ", node)));
  if (upgrade->response.status != 101 || upgrade->stream == nullptr) {
    const std::string text(Trim(upgrade->response.body));
    return call->Fail(Status(
        ReasonFromName("", upgrade->response.status),
        text.empty() ? fmt::format("the node answered {}", upgrade->response.status) : text));
  }
  call->StreamHeaders(101, "");
  std::unique_ptr<net::ByteStream> client =
      call->writer()->Upgrade(std::move(upgrade->response.headers));
  if (client != nullptr) net::JoinStreams(loop, std::move(client), std::move(upgrade->stream));
}

// What webhooks see of the connection.
json::Value ExecOptions(const net::Query& query) {
  json::Value options = json::Obj({{"kind", "PodExecOptions"}, {"apiVersion", "v1"}});
  for (const char* stream : {"stdin", "stdout", "stderr", "tty"})
    if (query.GetBool(stream)) options = std::move(options).Set(stream, true);
  if (const std::string_view container = query.Get("container"); !container.empty())
    options = std::move(options).Set("container", container);
  return std::move(options).Set("command", json::Strings(query.GetAll("command")));
}

Status StartExec(Core& core, const CallPtr& call, const ResourcePtr& pods) {
  const RequestInfo& info = call->info();
  ASSIGN_OR_RETURN(const Found found, FindObject(core, *pods->kind, info.ns, info.name));
  ASSIGN_OR_RETURN(const PodLocation location,
                   LocatePod(core, found.object, info.query.Get("container")));
  const std::string_view phase = found.object["status"]["phase"].AsString();
  if (schema::IsFinalPhase(phase)) {
    return Error(Reason::kBadRequest, "cannot exec in a stopped container: pod {} has phase {}",
                 info.name, phase);
  }
  core.options.node_proxy->Upgrade(
      location.node, NodeRequest(*call, location),
      [&core, call, node = location.node.node](Result<NodeUpgrade> upgrade) {
        OnNodeAnswer(core.loop, call, node, std::move(upgrade));
      });
  return Status::Ok();
}

Status AdmitExec(Core& core, const CallPtr& call, const ResourcePtr& pods) {
  const RequestInfo& info = call->info();
  if (info.method != "GET" && info.method != "POST") return MethodNotAllowedError();
  if (!call->request().headers.Has("Upgrade"))
    return Error(Reason::kBadRequest, "Upgrade request required");
  if (info.query.GetAll("command").empty())
    return Error(Reason::kBadRequest, "you must specify at least 1 command");
  AdmitUnstored(core, call, pods, Operation::kConnect, false, ExecOptions(info.query),
                [&core, call, pods](const json::Value&) { return StartExec(core, call, pods); });
  return Status::Ok();
}

}  // namespace

void HandleExec(Core& core, const CallPtr& call, const ResourcePtr& pods) {
  if (Status status = AdmitExec(core, call, pods); !status.ok()) call->Fail(status);
}

}  // namespace muster::apiserver
