// bench/watch_bench.cc
//
// Watches of a running `muster up`, each number beside a control of the same run where there is
// one.
//
//   watch_bench DATA_DIR PID fanout WATCHERS ROUNDS
//       WATCHERS watch one namespace; an object in it changes 30 times in one second, then 100
//       times. Time from the write to each watcher; CPU of the server for each event delivered to
//       a watcher, beside a bare OpenSSL loop that writes the same bytes as often, in turns.
//   watch_bench DATA_DIR PID overload SECONDS
//       5,000 connections: 2,000 watch (200 of them hang), 200 write as fast as they are answered,
//       the others idle; one client reads an object and /livez. How long these reads take, what
//       the server's loop and memory do, and how many writes were done and refused.
//
// PID is the server's. Prints `name value unit` lines.

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "bare_writer.h"
#include "base/check.h"
#include "base/log.h"
#include "cluster_client.h"
#include "json/write.h"
#include "tls_readers.h"

namespace muster::bench {
namespace {

constexpr char kConfigMaps[] = "/api/v1/namespaces/default/configmaps";
constexpr size_t kPaddingBytes = 1500;  // an event of about the size of a pod's

std::string Request(const std::string& target) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n",
                     target);
}

ReaderKeys KeysOf(const std::string& data_dir) {
  return {data_dir + "/pki/ca.crt", data_dir + "/pki/admin.crt", data_dir + "/pki/admin.key"};
}

std::string Body(const std::string& name) {
  return fmt::format(R"({{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}},)"
                     R"("data":{{"padding":"{}",{}}}}})",
                     name, std::string(kPaddingBytes, 'x'), StampNow());
}

// Writes one object `per_second` times a second from a thread of its own.
class Ticker {
 public:
  Ticker(const std::string& data_dir, int per_second, int count)
      : thread_([this, data_dir, per_second, count] { Run(data_dir, per_second, count); }) {}
  ~Ticker() { thread_.join(); }

 private:
  void Run(const std::string& data_dir, int per_second, int count) {
    ClusterClient cluster(data_dir);
    const Duration period = Duration(seconds(1)) / per_second;
    const Duration start = RealClock().Monotonic();
    int sent = 0, answered = 0;
    std::function<void()> tick = [&] {
      if (sent == count) return;
      ++sent;
      cluster.http->Send(cluster.endpoint,
                         MakeRequest("PUT", std::string(kConfigMaps) + "/tick", Body("tick")),
                         seconds(60), [&](Result<net::Response> answer) {
                           CHECK_MSG(answer.has_value() && answer->status == 200,
                                     answer.has_value() ? answer->body : answer.error().message());
                           if (++answered == count) cluster.loop.Stop();
                         });
      cluster.loop.After(start + sent * period - RealClock().Monotonic(), tick);
    };
    cluster.loop.Post([&] { tick(); });
    cluster.loop.Run();
  }

  std::thread thread_;
};

void PrintLatencies(const std::string& name, const std::vector<double>& latencies) {
  fmt::print("{}_p50_ms {:.2f} ms\n", name, 1000 * Percentile(latencies, 0.5));
  fmt::print("{}_p99_ms {:.2f} ms\n", name, 1000 * Percentile(latencies, 0.99));
}

void PauseUntil(Duration monotonic) {
  const int64_t ns = monotonic.count();
  const timespec until{ns / 1'000'000'000, ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

// A bare loop that writes the same bytes as often to as many readers of the same kind.
class Control {
 public:
  Control(const std::string& data_dir, int watchers)
      : writer_(data_dir + "/pki/apiserver.crt", data_dir + "/pki/apiserver.key"),
        readers_({data_dir + "/pki/ca.crt", "", ""}) {
    std::thread accepting([&] { writer_.Accept(watchers); });
    readers_.Open(watchers, writer_.port(), "");
    accepting.join();
  }

  // Its CPU time in seconds for `wanted` deliveries.
  double Run(int per_second, int events, size_t wanted) {
    double cpu = 0;
    const size_t before = readers_.stamps();
    std::thread writing([&] {
      const double cpu_before = ThreadCpuSeconds();
      const Duration start = RealClock().Monotonic();
      for (int i = 0; i < events; ++i) {
        PauseUntil(start + i * Duration(seconds(1)) / per_second);
        const std::string body = Body("tick");
        writer_.Write(fmt::format("{:x}\r\n{{\"type\":\"MODIFIED\",\"object\":{}}}\n\r\n",
                                  body.size() + 30, body));
      }
      cpu = ThreadCpuSeconds() - cpu_before;
    });
    readers_.Run(RealClock().Monotonic() + seconds(120), before + wanted);
    writing.join();
    CHECK(readers_.stamps() == before + wanted);
    return cpu;
  }

 private:
  BareWriter writer_;
  TlsReaders readers_;
};

// CPU seconds of the server for `wanted` deliveries.
double WatchedWrites(const std::string& data_dir, int pid, TlsReaders& readers, int per_second,
                     int events, size_t wanted) {
  const double cpu_before = ProcessCpuSeconds(pid);
  const size_t before = readers.stamps();
  {
    const Ticker ticker(data_dir, per_second, events);
    readers.Run(RealClock().Monotonic() + seconds(events / per_second + 30), before + wanted);
  }
  CHECK_MSG(readers.stamps() - before == wanted,
            fmt::format("{} of {} events arrived", readers.stamps() - before, wanted));
  return ProcessCpuSeconds(pid) - cpu_before;
}

// Server and control take turns, so that a machine that slows down slows both.
void Fanout(const std::string& data_dir, int pid, int watchers, int rounds) {
  ClusterClient cluster(data_dir);
  cluster.CreateAll(kConfigMaps, 1, [](int) {
    return json::Obj(
        {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", json::Obj({{"name", "tick"}})}});
  });
  Control control(data_dir, watchers);
  TlsReaders readers(KeysOf(data_dir));
  readers.Open(watchers, kApiPort, Request(std::string(kConfigMaps) + "?watch=true"));
  readers.Run(RealClock().Monotonic() + seconds(1), SIZE_MAX);  // the first part
  double server_cpu = 0, control_cpu = 0, deliveries = 0;
  std::map<int, std::vector<double>> latencies;
  for (int round = 0; round < rounds; ++round) {
    for (const int per_second : {30, 100}) {
      const int events = per_second;  // a second each
      const size_t wanted = static_cast<size_t>(events) * static_cast<size_t>(watchers);
      readers.TakeLatencies();
      server_cpu += WatchedWrites(data_dir, pid, readers, per_second, events, wanted);
      std::ranges::move(readers.TakeLatencies(), std::back_inserter(latencies[per_second]));
      control_cpu += control.Run(per_second, events, wanted);
      deliveries += static_cast<double>(wanted);
    }
  }
  for (const auto& [per_second, seen] : latencies) {
    PrintLatencies(fmt::format("fanout_{}", per_second), seen);
  }
  fmt::print("fanout_cpu_us {:.2f} us\n", 1e6 * server_cpu / deliveries);
  fmt::print("fanout_control_cpu_us {:.2f} us\n", 1e6 * control_cpu / deliveries);
  fmt::print("fanout_cpu_ratio {:.3f} x\n", server_cpu / control_cpu);
}

constexpr int kConnections = 5'000;
constexpr int kWatchers = 2'000;
constexpr int kHanging = 200;
constexpr int kWriters = 200;

double GaugeOf(const std::string& metrics, const std::string& name) {
  const size_t at = metrics.find("\n" + name + " ");
  return at == std::string::npos ? -1
                                 : std::strtod(metrics.c_str() + at + name.size() + 2, nullptr);
}

// {upper bound in seconds, tasks that took at most that long} of the histogram loop_lag_seconds.
std::vector<std::pair<double, double>> LoopLag(const std::string& metrics) {
  constexpr std::string_view kBucket = "\nloop_lag_seconds_bucket{le=\"";
  std::vector<std::pair<double, double>> buckets;
  for (size_t at = metrics.find(kBucket); at != std::string::npos;
       at = metrics.find(kBucket, at + 1)) {
    char* end = nullptr;
    const double bound = std::strtod(metrics.c_str() + at + kBucket.size(), &end);
    buckets.emplace_back(bound, std::strtod(end + std::string_view("\"} ").size(), nullptr));
  }
  return buckets;
}

// As Prometheus' histogram_quantile(): linear inside a bucket, the last finite bound at the end.
double Quantile(double share, const std::vector<std::pair<double, double>>& before,
                const std::vector<std::pair<double, double>>& after) {
  CHECK(!after.empty() && before.size() == after.size());
  const double wanted = share * (after.back().second - before.back().second);
  double below_bound = 0, below = 0;
  for (size_t i = 0; i < after.size(); ++i) {
    const double count = after[i].second - before[i].second;
    if (count >= wanted) {
      if (i + 1 == after.size()) return below_bound;
      return below_bound +
             (after[i].first - below_bound) * (wanted - below) / std::max(count - below, 1.0);
    }
    below_bound = after[i].first;
    below = count;
  }
  return below_bound;
}

// Reads an object, /livez and, for the loop's tasks, /metrics, again and again.
struct Prober {
  explicit Prober(const std::string& data_dir) : cluster(data_dir) {}

  void Run(Duration until) {
    const auto lag_before = LoopLag(cluster.Fetch("/metrics").body);
    while (RealClock().Monotonic() < until) {
      gets.push_back(Timed("/api/v1/namespaces/default"));
      health.push_back(Timed("/livez"));
      const std::string metrics = cluster.Fetch("/metrics").body;
      longest_task_s = std::max(longest_task_s, GaugeOf(metrics, "loop_longest_task_seconds"));
      most_memory = std::max(most_memory, GaugeOf(metrics, "process_resident_memory_bytes"));
    }
    lag_p999_s = Quantile(0.999, lag_before, LoopLag(cluster.Fetch("/metrics").body));
  }
  double Timed(const std::string& target) {
    const Duration start = RealClock().Monotonic();
    const net::Response answer = cluster.Fetch(target);
    CHECK_MSG(answer.status == 200, target + ": " + answer.body);
    return Seconds(RealClock().Monotonic() - start);
  }

  ClusterClient cluster;
  std::vector<double> gets, health;
  double lag_p999_s = 0, longest_task_s = 0, most_memory = 0;
};

// kWriters clients that write as fast as they are answered.
class Writers {
 public:
  void Run(const std::string& data_dir, Duration until) {
    // One HttpClient has a limited number of requests in flight: two of them, on two threads.
    std::thread other([&] { Write(data_dir, "a", until); });
    Write(data_dir, "b", until);
    other.join();
  }

  std::atomic<int> written = 0, refused = 0;

 private:
  void Write(const std::string& data_dir, const char* share, Duration until) {
    ClusterClient cluster(data_dir);
    int next = 0, open = kWriters / 2;
    std::function<void()> write = [&] {
      if (RealClock().Monotonic() >= until) {
        if (--open == 0) cluster.loop.Stop();
        return;
      }
      const std::string name = fmt::format("load-{}-{}", share, next++);
      cluster.http->Send(cluster.endpoint, MakeRequest("POST", kConfigMaps, Body(name)),
                         seconds(60), [&](Result<net::Response> answer) {
                           CHECK_MSG(answer.has_value(), "a write was not answered");
                           CHECK_MSG(answer->status == 201 || answer->status == 429, answer->body);
                           ++(answer->status == 201 ? written : refused);
                           write();
                         });
    };
    cluster.loop.Post([&] {
      for (int i = 0; i < kWriters / 2; ++i) write();
    });
    cluster.loop.Run();
  }
};

void Overload(const std::string& data_dir, int duration_s) {
  TlsReaders readers(KeysOf(data_dir));
  // As kubelets and controllers of a cluster watch: most their own node's pods, some a namespace.
  readers.Open(kHanging, kApiPort, Request(std::string(kConfigMaps) + "?watch=true"));
  readers.StopReading(kHanging);
  readers.Open(kWatchers / 100, kApiPort, Request(std::string(kConfigMaps) + "?watch=true"));
  for (int i = kHanging + kWatchers / 100; i < kWatchers; ++i) {
    readers.Open(
        1, kApiPort,
        Request(fmt::format("/api/v1/pods?watch=true&fieldSelector=spec.nodeName%3Dn{}", i)));
  }
  readers.Open(kConnections - kWatchers - kWriters, kApiPort, "");
  const Duration until = RealClock().Monotonic() + seconds(duration_s);
  Prober prober(data_dir);
  Writers writers;
  std::thread probing([&] { prober.Run(until); });
  std::thread writing([&] { writers.Run(data_dir, until); });
  readers.Run(until, SIZE_MAX);
  probing.join();
  writing.join();
  PrintLatencies("overload_get", prober.gets);
  PrintLatencies("overload_livez", prober.health);
  fmt::print("overload_loop_lag_p999_ms {:.2f} ms\n", 1000 * prober.lag_p999_s);
  fmt::print("overload_loop_longest_ms {:.2f} ms\n", 1000 * prober.longest_task_s);
  fmt::print("overload_resident_mb {:.1f} MB\n", prober.most_memory / 1e6);
  fmt::print("overload_writes_per_second {:.0f} 1/s\n",
             static_cast<double>(writers.written) / duration_s);
  fmt::print("overload_refused {} writes\n", writers.refused.load());
  fmt::print("overload_events_read {} events\n", readers.stamps());
}

int Run(int argc, char** argv) {
  if (argc < 5) return 2;
  rlimit descriptors{};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;
  setrlimit(RLIMIT_NOFILE, &descriptors);
  const std::string data_dir = argv[1];
  const int pid = std::atoi(argv[2]);
  const std::string_view what = argv[3];
  if (what == "fanout" && argc == 6) {
    Fanout(data_dir, pid, std::atoi(argv[4]), std::atoi(argv[5]));
  } else if (what == "overload" && argc == 5) {
    Overload(data_dir, std::atoi(argv[4]));
  } else {
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  muster::SetLogLevel(muster::LogLevel::kWarn);
  const int code = muster::bench::Run(argc, argv);
  if (code == 2) {
    fmt::print(stderr,
               "usage: watch_bench DATA_DIR PID fanout WATCHERS ROUNDS | overload SECONDS\n");
  }
  return code;
}
