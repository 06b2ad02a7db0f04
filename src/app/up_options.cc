#include "app/up_options.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "agent/agent.h"
#include "agent/simulated/simulated_nodes.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/session.h"
#include "schema/names.h"

namespace muster::app {
namespace {

constexpr char kUpExamples[] = R"(Examples:
  muster up                               this machine, in the foreground; Ctrl-C stops it
  muster up --detach                      in the background; `muster down` stops it
  muster up --simulate-gpus 8:H100        eight simulated GPUs, to try out GPU scheduling
  muster up --simulate-nodes 500          500 simulated nodes beside the real one
  muster up --data-dir /tmp/m --listen 127.0.0.1:7443)";

constexpr char kDownExamples[] = R"(Examples:
  muster down            stops the control plane and every pod; `muster up` goes on with the state
  muster down --purge    also deletes the data directory)";

// Parses; an empty message means that help was asked for and is printed.
Status Parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return Status::Ok();
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return Status(Reason::kBadRequest, "");
  } catch (const CLI::ExtrasError& error) {
    std::vector<std::string> flags;
    for (const CLI::Option* option : app.get_options())
      flags.push_back("--" + option->get_single_name());
    return Error(Reason::kBadRequest, "{}{} (see `{} --help`)", error.what(),
                 cli::UnknownFlagHint(std::vector<std::string>(argv + 1, argv + argc), flags),
                 app.get_name());
  } catch (const CLI::Error& error) {
    return Error(Reason::kBadRequest, "{} (see `{} --help`)", error.what(), app.get_name());
  }
}

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

Result<UpOptions> ParseUp(int argc, char** argv) {
  UpOptions options;
  options.data_dir = cli::DefaultDataDir();
  options.node_name = HostName();
  options.pod_max_pids = agent::kMaxPodPids;
  std::string listen = "127.0.0.1:6443";
  std::string gpus;
  std::string images = "pull";
  CLI::App app("Starts a whole Kubernetes for machine learning on this machine.", "muster up");
  app.add_option("--data-dir", options.data_dir, "where state, logs and the kubeconfig live")
      ->capture_default_str();
  app.add_option("--listen", listen, "HOST:PORT of the API server")->capture_default_str();
  app.add_flag("--detach", options.detach,
               "return when the cluster is ready and go on in the background");
  app.add_option("--simulate-gpus", gpus, "N[:MODEL]: offer N simulated GPUs on this node");
  app.add_option("--gpu-steady", options.gpu_steady_seconds,
                 "seconds without a fault after which a GPU that had one is offered again")
      ->capture_default_str()
      ->check(CLI::Range(0, 86'400));
  app.add_option("--simulate-nodes", options.simulate_nodes,
                 "add N simulated nodes beside the real one")
      ->check(CLI::Range(0, agent::kMaxSimulatedNodes));
  const CLI::Option* node_name =
      app.add_option("--node-name", options.node_name,
                     "name of this machine's Node; the first start decides it")
          ->capture_default_str();
  app.add_option("--kubelet-port", options.kubelet_port,
                 "port of the kubelet API on 127.0.0.1; 0 = any")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  app.add_option("--pod-max-pids", options.pod_max_pids,
                 "processes and threads that one pod may have")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{4'194'304}));
  app.add_option("--images", images,
                 "pull: containers start from the images that they name; machine: all of them see "
                 "this machine's own root, as with image `none`")
      ->capture_default_str()
      ->check(CLI::IsMember({"pull", "machine"}));
  app.add_flag("-v,--verbose", options.verbose, "log debug lines");
  app.footer(kUpExamples);
  RETURN_IF_ERROR(Parse(app, argc, argv));
  RETURN_IF_ERROR(ParseListen(listen, options.listen_host, options.listen_port));
  if (!gpus.empty()) {
    RETURN_IF_ERROR(ParseSimulatedGpus(gpus, options.simulate_gpus, options.simulated_gpu_model));
  }
  options.pull_images = images == "pull";
  options.node_name_given = node_name->count() > 0;
  RETURN_IF_ERROR(CheckNodeName(options.node_name));
  ASSIGN_OR_RETURN(options.data_dir, AbsoluteDataDir(options.data_dir));
  return options;
}

Result<DownOptions> ParseDown(int argc, char** argv) {
  DownOptions options;
  options.data_dir = cli::DefaultDataDir();
  CLI::App app("Stops the control plane and every pod of this machine.", "muster down");
  app.add_option("--data-dir", options.data_dir, "the data directory of `muster up`")
      ->capture_default_str();
  app.add_flag("--purge", options.purge,
               "also delete the data directory: all objects, logs, certificates");
  app.footer(kDownExamples);
  RETURN_IF_ERROR(Parse(app, argc, argv));
  ASSIGN_OR_RETURN(options.data_dir, AbsoluteDataDir(options.data_dir));
  return options;
}

}  // namespace muster::app
