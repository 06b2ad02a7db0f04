// bench/api_bench.cc
//
// The API server under load, each number beside a control measured in the same run:
//   creates: durable creates of pods through HTTPS, 64 clients; control: raw SQLite appends of the
//   same bytes, batch 64 list:    LIST of 10,000 pods; control: one stored blob of that size
//   through the same listener memory:  resident bytes with all pods stored
//
//   api_bench DIR [--short]      DIR: scratch on the disk to measure. Prints `name value unit`
//   lines.

#include <sqlite3.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "apiserver/server.h"
#include "base/check.h"
#include "base/log.h"
#include "json/write.h"
#include "load_generator.h"
#include "loop/asio_loop.h"
#include "loop/thread_pool.h"
#include "net/client.h"
#include "net/io_threads.h"
#include "net/pki.h"
#include "net/server.h"
#include "store/sqlite_store.h"

namespace muster {
namespace {

constexpr int kClients = 64;
constexpr size_t kPodBytes = 3300;  // what a training pod weighs with its status

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

int64_t ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  long total = 0, resident = 0;
  CHECK(std::fscanf(file, "%ld %ld", &total, &resident) == 2);
  std::fclose(file);
  return int64_t{resident} * sysconf(_SC_PAGESIZE);
}

std::string PodBody(int index) {
  const json::Value pod = json::Obj({
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata",
       json::Obj({{"name", fmt::format("pod-{:06}", index)},
                  {"labels", json::Obj({{"app", "bench"}, {"index", fmt::format("{:06}", index)}})},
                  {"annotations", json::Obj({{"padding", std::string(kPodBytes - 900, 'x')}})}})},
      {"spec", json::Obj({{"containers",
                           json::List({json::Obj({
                               {"name", "main"},
                               {"image", "none"},
                               {"command", json::List({"sleep", "1"})},
                               {"resources", json::Obj({{"requests", json::Obj({{"cpu", "1"}})}})},
                           })})}})},
  });
  return json::Write(pod);
}

// Serves a blob at /blob and passes everything else to the API server.
class BlobOrApi final : public net::Handler {
 public:
  explicit BlobOrApi(net::Handler& api) : api_(api) {}
  void Handle(net::Request request, net::ResponseWriterPtr writer) override {
    if (request.target != "/blob") return api_.Handle(std::move(request), std::move(writer));
    net::Response response;
    response.headers.Add("Content-Type", "application/json");
    response.body = *blob_;
    writer->Send(std::move(response));
  }
  void SetBlob(std::string blob) { blob_ = std::make_unique<std::string>(std::move(blob)); }

 private:
  net::Handler& api_;
  std::unique_ptr<std::string> blob_;
};

// The server side on its own loop thread, as `muster up` has it, without controllers.
class Server {
 public:
  explicit Server(const std::string& dir) {
    auto pki = net::Pki::Create(RealClock().Wall());
    CHECK(pki.has_value());
    auto server_keys =
        pki->IssueServer("api", net::DefaultServerNames("localhost", {}), RealClock().Wall());
    auto client_keys = pki->IssueClient("admin", {"system:masters"}, RealClock().Wall());
    CHECK(server_keys.has_value() && client_keys.has_value());
    client_options.ca_pem = pki->ca_pem();
    client_options.certificate_pem = client_keys->certificate_pem;
    client_options.key_pem = client_keys->key_pem;
    thread_ =
        std::thread([this, dir, server_keys, ca = pki->ca_pem()] { Run(dir, *server_keys, ca); });
    ready.wait(false);
  }
  ~Server() {
    loop_->Stop();
    thread_.join();
  }

  net::ClientOptions client_options;
  net::Endpoint endpoint;
  std::atomic<bool> ready{false};
  BlobOrApi* handler = nullptr;

 private:
  void Run(const std::string& dir, const net::KeyPair& keys, const std::string& ca) {
    AsioLoop loop;
    loop_ = &loop;
    net::IoThreads io(1);
    ThreadPool pool("pool", 1);
    auto store = store::OpenSqliteStore(loop, dir + "/bench.db", apiserver::MakeDecorator());
    CHECK(store.has_value());
    apiserver::ServerOptions options;
    options.pool = &pool;
    apiserver::ApiServer api(loop, **store, std::move(options));
    BlobOrApi blob_or_api(api);
    handler = &blob_or_api;
    net::ServerOptions listen;
    listen.tls = {keys.certificate_pem, keys.key_pem, ca};
    auto server = net::HttpServer::Start(loop, io, blob_or_api, std::move(listen));
    CHECK(server.has_value());
    endpoint = {true, "127.0.0.1", (*server)->port(), ""};
    loop.Post([&] {
      api.Start([&](Status status) {
        CHECK_MSG(status.ok(), status.message());
        ready = true;
        ready.notify_all();
      });
    });
    loop.Run();
  }

  AsioLoop* loop_ = nullptr;
  std::thread thread_;
};

// The bytes of create requests; only the digits of the pod's number differ.
class CreateRequests {
 public:
  CreateRequests()
      : bytes_(bench::RequestBytes("POST", "/api/v1/namespaces/default/pods", PodBody(0))) {
    for (size_t at = bytes_.find(kDigits); at != std::string::npos;
         at = bytes_.find(kDigits, at + 1))
      digits_.push_back(at);
    CHECK(digits_.size() == 2);
  }
  void Write(int index, std::string& out) const {
    out = bytes_;
    const std::string digits = fmt::format("{:06}", index);
    for (const size_t at : digits_) out.replace(at, digits.size(), digits);
  }

 private:
  static constexpr std::string_view kDigits = "000000";
  const std::string bytes_;
  std::vector<size_t> digits_;
};

// Appends rows of the same size, 64 to a transaction, WAL and synchronous=FULL as the store has it;
// seconds.
double RawSqliteAppends(const std::string& dir, int count) {
  sqlite3* db = nullptr;
  CHECK(sqlite3_open((dir + "/raw.db").c_str(), &db) == SQLITE_OK);
  const auto run = [db](const char* sql) {
    CHECK(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  };
  run("PRAGMA journal_mode=WAL");
  run("PRAGMA synchronous=FULL");
  run("CREATE TABLE log(revision INTEGER PRIMARY KEY, key TEXT, value BLOB)");
  run("CREATE INDEX by_key ON log(key, revision)");
  sqlite3_stmt* insert = nullptr;
  CHECK(sqlite3_prepare_v2(db, "INSERT INTO log VALUES(?,?,?)", -1, &insert, nullptr) == SQLITE_OK);
  const std::string value(kPodBytes, 'v');
  const Duration start = RealClock().Monotonic();
  for (int i = 0; i < count; ++i) {
    if (i % 64 == 0) run("BEGIN");
    const std::string key = fmt::format("/registry/core/pods/default/pod-{:06}", i);
    sqlite3_bind_int64(insert, 1, i + 1);
    sqlite3_bind_text(insert, 2, key.data(), static_cast<int>(key.size()), SQLITE_TRANSIENT);
    sqlite3_bind_blob(insert, 3, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
    CHECK(sqlite3_step(insert) == SQLITE_DONE);
    sqlite3_reset(insert);
    if (i % 64 == 63 || i + 1 == count) run("COMMIT");
  }
  const double took = Seconds(RealClock().Monotonic() - start);
  sqlite3_finalize(insert);
  sqlite3_close(db);
  return took;
}

// Creates and the control take turns: a disk that slows down slows both. Of both the fastest round
// counts, as of LIST and its control: what other programs take makes rounds longer, never shorter.
void MeasureCreates(const std::string& dir, const Server& server, int count) {
  constexpr int kRounds = 8;
  const int per_round = count / kRounds;
  const CreateRequests requests;
  bench::LoadGenerator load(server.endpoint.port, server.client_options, kClients);
  double creates_s = std::numeric_limits<double>::max(), raw_s = creates_s;
  for (int round = 0; round < kRounds; ++round) {
    const std::string raw_dir = fmt::format("{}/raw-{}", dir, round);
    std::filesystem::create_directory(raw_dir);
    raw_s = std::min(raw_s, RawSqliteAppends(raw_dir, per_round));
    std::filesystem::remove_all(raw_dir);
    const Duration start = RealClock().Monotonic();
    load.Run(per_round, 201,
             [&](int index, std::string& out) { requests.Write(round * per_round + index, out); });
    creates_s = std::min(creates_s, Seconds(RealClock().Monotonic() - start));
  }
  fmt::print("creates_per_second {:.0f} 1/s\n", per_round / creates_s);
  fmt::print("raw_sqlite_appends_per_second {:.0f} 1/s\n", per_round / raw_s);
  fmt::print("creates_to_raw_ratio {:.3f} x\n", raw_s / creates_s);
}

// GETs `target` once and returns {seconds, bytes}.
std::pair<double, size_t> Fetch(AsioLoop& loop, net::HttpClient& client,
                                const net::Endpoint& endpoint, const std::string& target,
                                std::string* body = nullptr) {
  const Duration start = RealClock().Monotonic();
  size_t bytes = 0;
  std::unique_ptr<net::ClientStream> stream;
  loop.Post([&] {
    net::Request request;
    request.method = "GET";
    request.target = target;
    stream = client.Stream(endpoint, std::move(request),
                           {[](int status, const net::Headers&) { CHECK(status == 200); },
                            [&](std::string_view data) {
                              bytes += data.size();
                              if (body != nullptr) body->append(data);
                            },
                            [&](Status status) {
                              CHECK_MSG(status.ok(), status.message());
                              loop.Stop();
                            }});
  });
  loop.Run();
  loop.Restart();
  return {Seconds(RealClock().Monotonic() - start), bytes};
}

void Bench(const std::string& dir, bool quick) {
  const int creates = 24'000;
  Server server(dir);
  AsioLoop loop;
  net::IoThreads io(1);
  auto client = net::HttpClient::Make(loop, io, server.client_options);
  CHECK(client.has_value());
  const int64_t empty = ResidentBytes();
  MeasureCreates(dir, server, creates);
  const int64_t full = ResidentBytes();
  fmt::print("bytes_per_stored_pod {:.0f} B\n", static_cast<double>(full - empty) / creates);

  const std::string list = fmt::format("/api/v1/pods?limit={}", quick ? 4'000 : 10'000);
  std::string body;
  Fetch(loop, **client, server.endpoint, list, &body);
  server.handler->SetBlob(std::move(body));
  double best_list = 1e9, best_blob = 1e9;
  size_t bytes = 0;
  for (int round = 0; round < 7; ++round) {
    const auto [list_time, list_bytes] = Fetch(loop, **client, server.endpoint, list);
    const auto [blob_time, blob_bytes] = Fetch(loop, **client, server.endpoint, "/blob");
    CHECK(list_bytes == blob_bytes);
    bytes = list_bytes;
    best_list = std::min(best_list, list_time);
    best_blob = std::min(best_blob, blob_time);
  }
  fmt::print("list_megabytes {:.1f} MB\n", static_cast<double>(bytes) / 1e6);
  fmt::print("list_seconds {:.4f} s\n", best_list);
  fmt::print("blob_seconds {:.4f} s\n", best_blob);
  fmt::print("list_to_blob_ratio {:.3f} x\n", best_list / best_blob);
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') {
    fmt::print(stderr, "usage: api_bench DIR [--short]\n");
    return 2;
  }
  muster::SetLogLevel(muster::LogLevel::kWarn);
  const bool quick = argc > 2 && std::string_view(argv[2]) == "--short";
  std::filesystem::create_directories(argv[1]);
  muster::Bench(argv[1], quick);
  return 0;
}
