#include "app/scheduler_process.h"

#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "app/loop_metrics.h"
#include "app/scheduler_metrics.h"
#include "app/threads.h"
#include "app/up_options.h"
#include "base/log.h"
#include "base/rng.h"
#include "cli/console.h"
#include "cli/session.h"
#include "client/https_transport.h"
#include "client/informer.h"
#include "client/leader_election.h"
#include "json/write.h"
#include "loop/asio_loop.h"
#include "loop/thread_pool.h"
#include "net/io_threads.h"
#include "net/server.h"
#include "scheduler/permissions.h"
#include "scheduler/scheduler.h"

namespace muster::app {
namespace {

constexpr const char* kDefaultListen = "127.0.0.1:10259";  // kube-scheduler's port
constexpr Duration kReleaseTimeout = seconds(2);

std::string HostIdentity(Rng& rng) {
  char host[256] = {};
  if (gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  return fmt::format("{}_{}", host, rng.Uuid());
}

struct SchedulerOptions {
  client::ConnectionConfig server;
  scheduler::SchedulerConfig config;
  std::string lease_ns = "kube-system";
  bool elect = true;
  std::string listen_host;
  uint16_t listen_port = 0;
};

class SchedulerProcess final : public net::Handler {
 public:
  explicit SchedulerProcess(SchedulerOptions options) : options_(std::move(options)) {}

  Status Open() {
    ASSIGN_OR_RETURN(transport_, client::HttpsTransport::Make(loop_, io_, options_.server));
    client_ = std::make_unique<client::ApiClient>(loop_, *transport_, scheduler::kSchedulerName);
    informers_ = std::make_unique<client::InformerSet>(*client_, rng_.Next());
    scheduler_ =
        std::make_unique<scheduler::Scheduler>(*client_, *informers_, pool_, options_.config);
    net::ServerOptions server;
    server.host = options_.listen_host;
    server.port = options_.listen_port;
    ASSIGN_OR_RETURN(listener_, net::HttpServer::Start(loop_, io_, *this, std::move(server)));
    return Status::Ok();
  }

  int Run() {
    loop_.OnSignal(SIGINT, [this] { Stop(0); });
    loop_.OnSignal(SIGTERM, [this] { Stop(0); });
    loop_.Post([this] { Begin(); });
    loop_.Run();
    listener_.reset();
    return exit_code_;
  }

 private:
  void Begin() {
    LOG_INFO("scheduler: started server={} metrics=http://{}/metrics", options_.server.context,
             listener_->address());
    if (!options_.elect) return Lead();
    client::LeaderElectionOptions lease{options_.lease_ns, scheduler::kSchedulerName,
                                        HostIdentity(rng_)};
    elector_ = std::make_unique<client::LeaderElector>(
        *client_, std::move(lease),
        client::LeaderCallbacks{
            [this] { Lead(); },
            [this] {
              fmt::print(stderr,
                         "muster scheduler: lost the Lease {}/{}: another copy schedules, or the "
                         "API server was away for {} s; start again\n",
                         options_.lease_ns, scheduler::kSchedulerName,
                         std::chrono::duration_cast<seconds>(client::kRenewDeadline).count());
              exit_code_ = 1;
              loop_.Stop();
            },
            [](const std::string& other) {
              LOG_INFO("scheduler: waits, another leads holder={}", other);
            }},
        Rng(rng_.Next()));
    elector_->Start();
  }

  void Lead() {
    leads_ = true;
    scheduler_->Start();
    informers_->Start();
    LOG_INFO("scheduler: schedules");
  }

  // The Lease is given up, so that a copy that waits need not wait for its end.
  void Stop(int code) {
    if (std::exchange(stopping_, true)) return loop_.Stop();
    exit_code_ = code;
    if (elector_ == nullptr) return loop_.Stop();
    elector_->Release([this] { loop_.Stop(); });
    loop_.After(kReleaseTimeout, [this] { loop_.Stop(); });
  }

  void Handle(net::Request request, net::ResponseWriterPtr writer) override {
    const std::string path = request.target.substr(0, request.target.find('?'));
    net::Response answer;
    answer.headers.Add("Content-Type", "text/plain; charset=utf-8");
    if (request.method != "GET" && request.method != "HEAD") {
      answer.status = 405;
    } else if (path == "/healthz" || path == "/livez") {
      answer.body = "ok";
    } else if (path == "/readyz") {
      const bool ready = !leads_ || informers_->AllSynced();
      answer.status = ready ? 200 : 503;
      answer.body = ready ? "ok" : "informers have not synced yet\n";
    } else if (path == "/metrics") {
      answer.body =
          loop_metrics_.Text() + SchedulerMetricsText(scheduler_->metrics()) + LeaderText();
    } else {
      answer.status = 404;
      answer.body = "here are /healthz, /livez, /readyz and /metrics\n";
    }
    writer->Send(std::move(answer));
  }

  std::string LeaderText() const {
    return fmt::format(
        "# HELP leader_election_master_status 1 while this copy leads.\n"
        "# TYPE leader_election_master_status gauge\n"
        "leader_election_master_status{{name=\"{}\"}} {}\n",
        scheduler::kSchedulerName, leads_ ? 1 : 0);
  }

  const SchedulerOptions options_;
  Rng rng_{SeedFromSystem()};
  AsioLoop loop_;
  net::IoThreads io_{1};
  ThreadPool pool_{"pool", kPoolThreads};
  LoopMetrics loop_metrics_{loop_};
  std::unique_ptr<client::HttpsTransport> transport_;
  std::unique_ptr<client::ApiClient> client_;
  std::unique_ptr<client::InformerSet> informers_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<client::LeaderElector> elector_;
  std::unique_ptr<net::HttpServer> listener_;
  bool leads_ = false;
  bool stopping_ = false;
  int exit_code_ = 0;
};

Result<int> RunScheduler(const cli::Arguments& arguments, cli::Console& console) {
  SetLogLevel(arguments.Has("verbose") ? LogLevel::kDebug : LogLevel::kInfo);
  SchedulerOptions options;
  ASSIGN_OR_RETURN(options.server, cli::FindConnection(arguments));
  RETURN_IF_ERROR(ParseListen(arguments.Get("listen"), options.listen_host, options.listen_port));
  if (arguments.Has("scheduler-name"))
    options.config.scheduler_names = arguments.GetAll("scheduler-name");
  options.lease_ns = arguments.Get("lease-namespace");
  options.elect = arguments.Get("leader-elect") == "true";
  signal(SIGPIPE, SIG_IGN);
  SchedulerProcess process(std::move(options));
  RETURN_IF_ERROR(process.Open());
  console.Print("muster scheduler runs; Ctrl-C stops it. Pods that run go on.\n");
  std::fflush(stdout);
  return process.Run();
}

Result<int> RunRbac(const cli::Arguments& arguments, cli::Console& console) {
  const std::string ns = arguments.Has("namespace") ? arguments.Get("namespace") : "kube-system";
  std::string text;
  for (const json::Value& object : scheduler::SchedulerRbac(ns))
    text += (text.empty() ? "" : "---\n") + json::WriteYaml(object);
  console.Out(text);
  return 0;
}

}  // namespace

cli::Command SchedulerCommand() {
  cli::Command command;
  command.name = "scheduler";
  command.summary = "schedule a cluster's pods from a process of its own";
  command.usage = "[flags]";
  command.details =
      "Binds pods of any Kubernetes cluster with muster's scheduler: gangs, exact GPUs, reasons. "
      "Several copies may run: one schedules, the others wait for its Lease. What it must be "
      "allowed to do: muster rbac scheduler.";
  const scheduler::SchedulerConfig config;
  command.flags = {
      {"scheduler-name",
       0,
       "NAME",
       "schedule pods with this spec.schedulerName; may be repeated (default: default-scheduler, "
       "volcano, muster and muster-spread)",
       "",
       {}},
      {"leader-elect",
       0,
       "BOOL",
       "take part in the election of a leader",
       "true",
       {"true", "false"}},
      {"lease-namespace", 0, "NAMESPACE", "of the Lease muster-scheduler", "kube-system", {}},
      {"listen", 0, "HOST:PORT", "for /metrics, /healthz and /readyz", kDefaultListen, {}},
      {"verbose", 'v', "", "log debug lines", "", {}}};
  command.examples = {
      {"muster scheduler --kubeconfig ~/.kube/config --scheduler-name muster",
       "beside the cluster's own scheduler, for pods that name it"},
      {"muster up --scheduler=off & muster scheduler", "apart from muster's own control plane"}};
  command.run_offline = RunScheduler;
  return command;
}

cli::Command RbacCommand() {
  cli::Command command;
  command.name = "rbac";
  command.summary = "print what a part of muster must be allowed to do on a cluster";
  command.usage = "scheduler [-n NAMESPACE]";
  command.details =
      "A ServiceAccount, a ClusterRole with what the part asks for and nothing else, a Role for "
      "its Lease, and their bindings, as YAML.";
  command.verbs = {{"scheduler"}};
  command.examples = {{"muster rbac scheduler | kubectl apply -f -", "allow it"}};
  command.run_offline = RunRbac;
  return command;
}

}  // namespace muster::app
