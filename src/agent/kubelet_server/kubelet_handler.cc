#include "agent/kubelet_server/kubelet_handler.h"

#include <algorithm>
#include <map>

#include "agent/kubelet_server/exec_session.h"
#include "agent/kubelet_server/log_stream.h"
#include "base/strings.h"
#include "json/write.h"

namespace muster::agent {

struct KubeletHandler::Call {
  std::string ns, pod, container;
  std::multimap<std::string, std::string> query;

  std::string Get(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
  }
  bool Flag(const std::string& name) const {
    const std::string value = Get(name);
    return value == "true" || value == "1";
  }
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

std::multimap<std::string, std::string> ParseQuery(std::string_view text) {
  std::multimap<std::string, std::string> query;
  for (std::string_view part : SplitNonEmpty(text, '&')) {
    const size_t equals = part.find('=');
    const auto name = PercentDecode(part.substr(0, equals), true);
    const auto value = equals == std::string_view::npos
                           ? std::string()
                           : PercentDecode(part.substr(equals + 1), true);
    if (name && value) query.emplace(*name, *value);
  }
  return query;
}

Result<LogOptions> ParseLogOptions(const std::multimap<std::string, std::string>& query, Time now) {
  LogOptions options;
  for (const auto& [name, value] : query) {
    const bool flag = value == "true" || value == "1";
    const auto number = ParseInt(value);
    const bool needs_number = name == "tailLines" || name == "limitBytes" || name == "sinceSeconds";
    if (needs_number && !number)
      return Error(Reason::kBadRequest, "{} must be a number, not {:?}", name, value);
    if (name == "follow") options.follow = flag;
    if (name == "previous") options.previous = flag;
    if (name == "timestamps") options.timestamps = flag;
    if (name == "tailLines") options.tail_lines = *number;
    if (name == "limitBytes") options.limit_bytes = *number;
    if (name == "sinceSeconds") options.since = now - seconds(*number);
    if (name == "sinceTime") options.since = ParseTime(value);
  }
  return options;
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
  const size_t question = request.target.find('?');
  std::vector<std::string> parts;
  for (std::string_view part :
       SplitNonEmpty(std::string_view(request.target).substr(0, question), '/')) {
    parts.push_back(PercentDecode(part, false).value_or(""));
  }
  Call call;
  if (question != std::string::npos)
    call.query = ParseQuery(std::string_view(request.target).substr(question + 1));
  if (parts.size() == 1 && parts[0] == "healthz") return Answer(*writer, 200, "ok");
  if (parts.size() == 1 && parts[0] == "pods") return ListPods(std::move(writer));
  if (parts.size() != 4 || (parts[0] != "containerLogs" && parts[0] != "exec")) {
    return Answer(*writer, 404, "404 page not found\n");
  }
  call.ns = parts[1];
  call.pod = parts[2];
  call.container = parts[3];
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
  if (worker == nullptr)
    return Answer(*writer, 404, fmt::format("pod \"{}\" does not exist on this node\n", call.pod));
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
  if (worker == nullptr)
    return Answer(*writer, 404, fmt::format("pod \"{}\" does not exist on this node\n", call.pod));
  const ContainerRuntimeState* container = FindContainer(*worker, call.container);
  if (container == nullptr || container->is != ContainerRuntimeState::Is::kRunning) {
    return Answer(*writer, 404, fmt::format("container not found (\"{}\")\n", call.container));
  }
  ExecRequest exec;
  exec.pod_uid = worker->uid();
  exec.container = call.container;
  exec.tty = call.Flag("tty");
  exec.in = call.Flag("stdin") || call.Flag("input");
  exec.out = call.Flag("stdout") || call.Flag("output");
  exec.err = call.Flag("stderr") || call.Flag("error");
  const auto [first, last] = call.query.equal_range("command");
  for (auto word = first; word != last; ++word) exec.command.push_back(word->second);
  if (exec.command.empty()) return Answer(*writer, 400, "exec needs at least one command=\n");
  StartExecSession(loop_, runtime_, std::move(exec), request, std::move(writer));
}

}  // namespace muster::agent
