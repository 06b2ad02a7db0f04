#include "agent/kubelet_server/kubelet_handler.h"

#include <algorithm>

#include "agent/kubelet_server/exec_session.h"
#include "agent/kubelet_server/log_stream.h"
#include "base/bounded_seconds.h"
#include "base/strings.h"
#include "json/write.h"
#include "net/url.h"

namespace muster::agent {

struct KubeletHandler::Call {
  std::string ns, pod, container;
  net::Query query;
};

namespace {

void Answer(net::ResponseWriter& writer, int status, std::string body,
            std::string type = "text/plain") {
  net::Response response;
  response.status = status;
  response.headers.Set("Content-Type", std::move(type));
  response.body = std::move(body);
  writer.Send(std::move(response));
}

bool MayCall(const net::Peer& peer) {
  if (peer.user == "kube-apiserver" || peer.user == "kube-apiserver-kubelet-client") return true;
  return std::find(peer.groups.begin(), peer.groups.end(), "system:masters") != peer.groups.end();
}

Result<LogOptions> ParseLogOptions(const net::Query& query, Time now) {
  LogOptions options;
  options.follow = query.GetBool("follow");
  options.previous = query.GetBool("previous");
  options.timestamps = query.GetBool("timestamps");
  for (const auto& [name, value] : query.list()) {
    const auto number = ParseInt(value);
    const bool needs_number = name == "tailLines" || name == "limitBytes" || name == "sinceSeconds";
    if (needs_number && !number)
      return Error(Reason::kBadRequest, "{} must be a number, not {:?}", name, value);
    if (name == "tailLines") options.tail_lines = *number;
    if (name == "limitBytes") options.limit_bytes = *number;
    if (name == "sinceSeconds") options.since = now - BoundedSeconds(*number);
    if (name == "sinceTime") options.since = ParseTime(value);
  }
  return options;
}

// After a restart of the node its pods are not all known at once: clients ask again by themselves.
void AnswerNoPod(net::ResponseWriter& writer, const PodManager& pods, const std::string& pod) {
  if (pods.synced())
    return Answer(writer, 404, fmt::format("pod \"{}\" does not exist on this node\n", pod));
  net::Response response;
  response.status = 503;
  response.headers.Set("Content-Type", "text/plain");
  response.headers.Set("Retry-After", "1");
  response.body =
      fmt::format("this node has just started and does not know yet of pod \"{}\"\n", pod);
  writer.Send(std::move(response));
}

const ContainerRuntimeState* FindContainer(const PodWorker& worker, const std::string& name) {
  for (const ContainerRuntimeState& container : worker.state().containers) {
    if (container.name == name) return &container;
  }
  return nullptr;
}

}  // namespace

void KubeletHandler::Handle(net::Request request, net::ResponseWriterPtr writer) {
  if (!MayCall(request.peer)) {
    return Answer(*writer, request.peer.user.empty() ? 401 : 403,
                  "the kubelet API needs the API server's client certificate\n");
  }
  Result<net::SplitTarget> target = net::ParseTarget(request.target);
  if (!target) return Answer(*writer, 400, target.error().message() + "\n");
  const std::vector<std::string>& parts = target->segments;
  if (parts.size() == 1 && parts[0] == "healthz") return Answer(*writer, 200, "ok");
  if (parts.size() == 1 && parts[0] == "metrics" && metrics_) {
    return metrics_([writer = std::move(writer)](std::string text) {
      Answer(*writer, 200, std::move(text), "text/plain; version=0.0.4; charset=utf-8");
    });
  }
  if (parts.size() == 2 && parts[0] == "stats" && parts[1] == "summary" && summary_) {
    return summary_([writer = std::move(writer)](const json::Value& summary) {
      Answer(*writer, 200, json::Write(summary), "application/json");
    });
  }
  if (parts.size() == 1 && parts[0] == "pods") return ListPods(std::move(writer));
  if (!parts.empty() && parts[0] == "images" && parts.size() <= 2) {
    if (!images_)
      return Answer(*writer, 404, "this node pulls no images: muster up --images machine\n");
    return images_->Handle(request, parts.size() == 2 ? parts[1] : "", std::move(writer));
  }
  if (parts.size() != 4 || (parts[0] != "containerLogs" && parts[0] != "exec")) {
    return Answer(*writer, 404, "404 page not found\n");
  }
  const Call call{parts[1], parts[2], parts[3], std::move(target->query)};
  if (parts[0] == "exec") return Exec(call, request, std::move(writer));
  if (request.method != "GET") return Answer(*writer, 405, "logs are read with GET\n");
  Logs(call, std::move(writer));
}

void KubeletHandler::ListPods(net::ResponseWriterPtr writer) {
  json::Value list =
      json::Obj({{"kind", "PodList"}, {"apiVersion", "v1"}, {"metadata", json::Obj()}});
  Answer(*writer, 200, json::Write(list.Set("items", json::Value(pods_.Objects()))),
         "application/json");
}

void KubeletHandler::Logs(const Call& call, net::ResponseWriterPtr writer) {
  const PodWorker* worker = pods_.Find(call.ns, call.pod);
  if (worker == nullptr) return AnswerNoPod(*writer, pods_, call.pod);
  const ContainerRuntimeState* container = FindContainer(*worker, call.container);
  if (container == nullptr) {
    return Answer(*writer, 400,
                  fmt::format("container {} is not valid for pod {}\n", call.container, call.pod));
  }
  Result<LogOptions> options = ParseLogOptions(call.query, loop_.Now());
  if (!options) return Answer(*writer, 400, options.error().message() + "\n");
  const std::string dir = PodLogDir(data_dir_, worker->pod()) + "/" + call.container;
  // As upstream: previous is the run that lastState tells of, which is the latest one while the
  // container waits to be started again.
  if (options->previous && !container->last_exit) {
    return Answer(*writer, 400,
                  fmt::format("previous terminated container \"{}\" in pod \"{}\" not found\n",
                              call.container, call.pod));
  }
  const std::optional<int> attempt =
      options->previous ? container->last_exit_attempt : LatestLogAttempt(dir);
  if (!attempt) {
    return Answer(*writer, 400,
                  fmt::format("container \"{}\" in pod \"{}\" is waiting to start: {}\n",
                              call.container, call.pod, container->waiting_reason));
  }
  LogStreamRequest stream;
  stream.path = fmt::format("{}/{}.log", dir, *attempt);
  stream.options = *options;
  stream.still_running = [this, ns = call.ns, pod = call.pod, name = call.container,
                          attempt = *attempt] {
    const PodWorker* now = pods_.Find(ns, pod);
    const ContainerRuntimeState* state = now == nullptr ? nullptr : FindContainer(*now, name);
    return state != nullptr && state->is == ContainerRuntimeState::Is::kRunning &&
           state->attempt == attempt;
  };
  StartLogStream(loop_, pool_, std::move(stream), std::move(writer));
}

void KubeletHandler::Exec(const Call& call, const net::Request& request,
                          net::ResponseWriterPtr writer) {
  const PodWorker* worker = pods_.Find(call.ns, call.pod);
  if (worker == nullptr) return AnswerNoPod(*writer, pods_, call.pod);
  const ContainerRuntimeState* container = FindContainer(*worker, call.container);
  if (container == nullptr || container->is != ContainerRuntimeState::Is::kRunning) {
    return Answer(*writer, 404, fmt::format("container not found (\"{}\")\n", call.container));
  }
  ExecRequest exec;
  exec.pod_uid = worker->uid();
  exec.container = call.container;
  exec.tty = call.query.GetBool("tty");
  exec.in = call.query.GetBool("stdin") || call.query.GetBool("input");
  exec.out = call.query.GetBool("stdout") || call.query.GetBool("output");
  exec.err = call.query.GetBool("stderr") || call.query.GetBool("error");
  exec.command = call.query.GetAll("command");
  if (exec.command.empty()) return Answer(*writer, 400, "exec needs at least one command=\n");
  StartExecSession(loop_, runtime_, std::move(exec), request, std::move(writer));
}

}  // namespace muster::agent
