#include "app/up_options.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include <fmt/core.h>

#include "agent/agent.h"
#include "agent/simulated/simulated_nodes.h"
#include "autoscaler/instance_catalog.h"
#include "base/strings.h"
#include "cli/duration_flag.h"
#include "cli/session.h"
#include "schema/names.h"

namespace muster::app {
namespace {

constexpr const char* kAutoscalerPeriodFlag = "horizontal-pod-autoscaler-sync-period";
constexpr Duration kMinAutoscalerPeriod = seconds(1);

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return NodeNameOf(name);
}

Status CheckNodeName(const std::string& name) {
  schema::Problems problems;
  schema::CheckDns1123Subdomain(name, problems);
  if (problems.empty()) return Status::Ok();
  return Error(Reason::kBadRequest, "--node-name {:?}: {}", name, problems.front());
}

// The text of a catalog that can be read.
Status ReadInstanceTypes(const std::string& path, std::string& text) {
  std::ifstream file(path);
  text.assign(std::istreambuf_iterator<char>(file), {});
  if (!file.good() && !file.eof())
    return Error(Reason::kBadRequest, "--instance-types {}: {}", path, std::strerror(errno));
  if (text.size() > kMaxInstanceTypesBytes) {
    return Error(Reason::kBadRequest, "--instance-types {}: {} bytes, at most {}", path,
                 text.size(), kMaxInstanceTypesBytes);
  }
  const auto catalog = autoscaler::ReadCatalog(text);
  if (catalog) return Status::Ok();
  return Error(Reason::kBadRequest, "--instance-types {}: {}", path, catalog.error().message());
}

Result<Duration> AutoscalerPeriod(const cli::Arguments& arguments) {
  const std::string text = arguments.Get(kAutoscalerPeriodFlag);
  ASSIGN_OR_RETURN(const Duration period, cli::ParseSpanFlag(kAutoscalerPeriodFlag, text));
  if (period >= kMinAutoscalerPeriod) return period;
  return Error(Reason::kBadRequest, "--{} {}: expected 1s or more", kAutoscalerPeriodFlag, text);
}

}  // namespace

std::string NodeNameOf(std::string_view host_name) {
  std::string name;
  for (const std::string_view part : Split(host_name, '.')) {
    std::string label;
    for (const char c : ToLower(part)) {
      const bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
      if (fits || !label.empty()) label += fits ? c : '-';
    }
    while (label.ends_with('-')) label.pop_back();
    if (label.empty()) continue;
    if (!name.empty()) name += '.';
    name += label;
  }
  return name.empty() ? "node" : name;
}

Result<std::string> AbsoluteDataDir(const std::string& dir) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(dir, error);
  if (dir.empty()) {
    return Error(Reason::kBadRequest, "{}",
                 cli::DefaultDataDir().empty()
                     ? "HOME is not set: say where the cluster's state is with --data-dir DIR"
                     : "--data-dir \"\": expected a directory");
  }
  if (error) return Error(Reason::kBadRequest, "--data-dir {:?}: {}", dir, error.message());
  std::string text = path.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  if (text == "/") return Error(Reason::kBadRequest, "--data-dir must not be /");
  return text;
}

Status ParseSimulatedGpus(const std::string& text, int& count, std::string& model) {
  const size_t colon = text.find(':');
  const std::optional<int64_t> parsed = ParseInt(text.substr(0, colon));
  if (!parsed || *parsed < 0 || *parsed > agent::kMaxSimulatedGpus) {
    return Error(Reason::kBadRequest,
                 "--simulate-gpus {}: expected N or N:MODEL with N from 0 to {}", text,
                 agent::kMaxSimulatedGpus);
  }
  count = static_cast<int>(*parsed);
  if (colon != text.npos) {
    model = text.substr(colon + 1);
    // The model becomes a label value.
    const bool fits =
        !model.empty() && model.size() <= 63 &&
        model.find_first_not_of(
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == model.npos;
    if (!fits) {
      return Error(
          Reason::kBadRequest,
          "--simulate-gpus {}: the model must be up to 63 letters, digits, '-', '_' and '.'", text);
    }
  }
  return Status::Ok();
}

Status ParseListen(const std::string& text, std::string& host, uint16_t& port) {
  const size_t colon = text.rfind(':');
  const std::optional<int64_t> number =
      colon == text.npos ? std::nullopt : ParseInt(text.substr(colon + 1));
  if (!number || *number < 0 || *number > 65535 || colon == 0) {
    return Error(Reason::kBadRequest, "--listen {}: expected HOST:PORT, e.g. 127.0.0.1:6443", text);
  }
  host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  // The certificate and the kubeconfig name the address.
  in6_addr address;
  if (inet_pton(AF_INET, host.c_str(), &address) != 1 &&
      inet_pton(AF_INET6, host.c_str(), &address) != 1) {
    return Error(Reason::kBadRequest,
                 "--listen {}: HOST must be an IP address, e.g. 127.0.0.1, or 0.0.0.0 for all of "
                 "this machine's",
                 text);
  }
  port = static_cast<uint16_t>(*number);
  return Status::Ok();
}

Result<UpOptions> UpOptionsOf(const cli::Arguments& arguments) {
  UpOptions options;
  RETURN_IF_ERROR(ParseListen(arguments.Get("listen"), options.listen_host, options.listen_port));
  options.detach = arguments.Has("detach");
  if (arguments.Has("simulate-gpus")) {
    RETURN_IF_ERROR(ParseSimulatedGpus(arguments.Get("simulate-gpus"), options.simulate_gpus,
                                       options.simulated_gpu_model));
  }
  const auto number = [&arguments](const char* flag, int64_t least, int64_t most) {
    return arguments.GetInt(flag, least, least, most);
  };
  ASSIGN_OR_RETURN(options.gpu_steady_seconds, number("gpu-steady", 0, 86'400));
  ASSIGN_OR_RETURN(options.gpu_idle_seconds, number("gpu-idle", 0, 7 * 86'400));
  ASSIGN_OR_RETURN(options.simulate_nodes, number("simulate-nodes", 0, agent::kMaxSimulatedNodes));
  ASSIGN_OR_RETURN(options.node_start_delay,
                   cli::ParseDurationFlag("node-start-delay", arguments.Get("node-start-delay")));
  ASSIGN_OR_RETURN(options.horizontal_pod_autoscaler_sync_period, AutoscalerPeriod(arguments));
  if (arguments.Has("instance-types"))
    RETURN_IF_ERROR(ReadInstanceTypes(arguments.Get("instance-types"), options.instance_types));
  ASSIGN_OR_RETURN(options.kubelet_port, number("kubelet-port", 0, 65535));
  ASSIGN_OR_RETURN(options.pod_max_pids, number("pod-max-pids", 1, 4'194'304));
  options.pull_images = arguments.Get("images") == "pull";
  options.schedules = arguments.Get("scheduler") == "on";
  options.controls = arguments.Get("controllers") == "on";
  options.verbose = arguments.Has("verbose");
  options.node_name = arguments.Get("node-name");
  options.node_name_given = arguments.Has("node-name");
  RETURN_IF_ERROR(CheckNodeName(options.node_name));
  ASSIGN_OR_RETURN(options.data_dir, AbsoluteDataDir(arguments.Get("data-dir")));
  return options;
}

Result<DownOptions> DownOptionsOf(const cli::Arguments& arguments) {
  DownOptions options;
  options.purge = arguments.Has("purge");
  ASSIGN_OR_RETURN(options.data_dir, AbsoluteDataDir(arguments.Get("data-dir")));
  return options;
}

namespace {

std::vector<cli::Flag> FlagsOfScaling() {
  return {{kAutoscalerPeriodFlag,
           0,
           "DURATION",
           "between two looks at a HorizontalPodAutoscaler",
           "15s",
           {}},
          {"instance-types",
           0,
           "FILE",
           "machines and prices that NodePools choose from, beside Amazon's (docs/autoscaling.md)",
           "",
           {}},
          {"node-start-delay",
           0,
           "DURATION",
           "how long a node that a NodePool adds takes to start",
           "10s",
           {}}};
}

}  // namespace

cli::Command DeclareUp() {
  cli::Command command;
  command.name = "up";
  command.summary = "start a cluster on this machine";
  command.usage = "[flags]";
  command.details = "A whole Kubernetes for machine learning: API server, scheduler, this node.";
  command.flags = {
      {"data-dir",
       0,
       "DIR",
       "where state, logs and the kubeconfig live",
       cli::DefaultDataDir(),
       {}},
      {"listen", 0, "HOST:PORT", "of the API server", "127.0.0.1:6443", {}},
      {"detach", 0, "", "return when the cluster is ready and go on in the background", "", {}},
      {"simulate-gpus", 0, "N[:MODEL]", "offer N simulated GPUs on this node", "", {}},
      {"gpu-steady",
       0,
       "SECONDS",
       "without a fault after which a GPU that had one is offered again",
       "30",
       {}},
      {"gpu-idle",
       0,
       "SECONDS",
       "in which a GPU did nothing, after which the pod that holds it is told; 0: never",
       "1800",
       {}},
      {"simulate-nodes", 0, "N", "add N simulated nodes beside the real one", "", {}},
      {"node-name", 0, "NAME", "of this machine's Node", HostName(), {}},
      {"kubelet-port", 0, "PORT", "of the kubelet API on 127.0.0.1; 0: any", "10250", {}},
      {"pod-max-pids",
       0,
       "N",
       "processes and threads that one pod may have",
       std::to_string(agent::kMaxPodPids),
       {}},
      {"images",
       0,
       "HOW",
       "pull: containers start from the images that they name; machine: all of them see this "
       "machine's own root, as with image `none`",
       "pull",
       {"pull", "machine"}},
      {"scheduler",
       0,
       "HOW",
       "on: in this process; off: pods wait for `muster scheduler`",
       "on",
       {"on", "off"}},
      {"controllers",
       0,
       "HOW",
       "on: in this process; off: those that Kubernetes has, too, are left to a "
       "kube-controller-manager",
       "on",
       {"on", "off"}},
      {"verbose", 'v', "", "log debug lines", "", {}}};
  for (cli::Flag& flag : FlagsOfScaling()) command.flags.push_back(std::move(flag));
  command.examples = {
      {"muster up", "in the foreground; Ctrl-C stops it"},
      {"muster up --detach", "in the background; `muster down` stops it"},
      {"muster up --simulate-gpus 8:H100", "try out GPU scheduling"},
      {"muster up --simulate-nodes 500", "500 simulated nodes beside the real one"},
      {"muster up --listen 127.0.0.1:7443 --kubelet-port 0", "beside another user's cluster"}};
  command.local = true;
  return command;
}

cli::Command DeclareDown() {
  cli::Command command;
  command.name = "down";
  command.summary = "stop the control plane and every pod of this machine";
  command.usage = "[flags]";
  command.flags = {
      {"data-dir", 0, "DIR", "the data directory of `muster up`", cli::DefaultDataDir(), {}},
      {"purge",
       0,
       "",
       "also delete the data directory: all objects, logs, certificates; and what `muster "
       "kubeconfig --merge` gave to kubectl",
       "",
       {}}};
  command.examples = {{"muster down", "`muster up` goes on with the state"},
                      {"muster down --purge", "nothing is left"}};
  command.local = true;
  return command;
}

}  // namespace muster::app
