// src/cli/session.h
//
// Session: a command's way to one API server. The program is asynchronous, a command is not: the
// calls here run the loop until the answer is there.
//
// Life cycle: one per run. `Open` connects to nothing yet: the first call does.
// Thread:     the loop thread, which is the main thread.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command.h"
#include "client/api_client.h"
#include "client/https_transport.h"
#include "json/value.h"
#include "loop/asio_loop.h"
#include "loop/loop.h"
#include "net/http.h"

namespace muster::cli {

// Runs a loop until told to stop: AsioLoop for real, SimLoop in tests.
class Pump {
 public:
  virtual ~Pump() = default;
  virtual void Run() = 0;  // returns after Quit(), or when nothing is left to do in simulation
  virtual void Quit() = 0;
};

class Session {
 public:
  // The kubeconfig of --kubeconfig, $KUBECONFIG, the data directory of `muster up`, or
  // ~/.kube/config: the first there.
  static Result<std::unique_ptr<Session>> Open(const Arguments& arguments);
  // Over something else: for tests.
  Session(Loop& loop, Pump& pump, client::Transport& transport, std::string ns);
  ~Session();

  Loop& loop() { return loop_; }
  client::ApiClient& client() { return *client_; }
  const std::string& ns() const { return ns_; }
  // For commands that need a terminal and signals; null in tests.
  AsioLoop* asio_loop() { return asio_loop_; }
  client::HttpsTransport* https() { return https_; }
  // The client certificate (PEM) by which Open() connects; "" if it has none.
  const std::string& certificate_pem() const { return certificate_pem_; }
  std::string server() const { return https_ == nullptr ? "" : https_->endpoint().ToString(); }

  // Starts with `start`, which is given what to call when done, and runs the loop until then.
  void RunUntilDone(const std::function<void(std::function<void()> done)>& start);

  Result<json::Value> Get(const client::Target& target);
  Result<json::Value> List(const client::Resource& resource, std::string_view ns,
                           const client::ListOptions& options = {});
  Result<json::Value> Create(const client::Target& target, const json::Value& object);
  Result<json::Value> Delete(const client::Target& target, const client::DeleteOptions& options);
  // Any request, any answer.
  Result<net::Response> Send(net::Request request);
  // Any request; a Status for an answer that is not 2xx.
  Result<net::Response> Raw(net::Request request);
  // GET of a JSON document.
  Result<json::Value> GetJson(const std::string& path,
                              const std::string& accept = "application/json");
  // The same for several at once, in order.
  std::vector<Result<json::Value>> GetJsons(const std::vector<std::string>& paths);
  // Runs the loop for a while.
  void Sleep(Duration duration);

  // `Warning:` headers of the answers so far, without duplicates; taken by the caller.
  std::vector<std::string> TakeWarnings();

 private:
  struct Owned;
  Result<json::Value> Await(const std::function<void(client::ApiClient::Done)>& start);

  std::unique_ptr<Owned> owned_;
  Loop& loop_;
  Pump& pump_;
  std::unique_ptr<client::Transport> warnings_transport_;
  std::unique_ptr<client::ApiClient> client_;
  std::string ns_;
  AsioLoop* asio_loop_ = nullptr;
  client::HttpsTransport* https_ = nullptr;
  std::string certificate_pem_;
  std::vector<std::string> warnings_;
};

// Where `muster up` keeps its state unless told otherwise: $MUSTER_DATA_DIR, /var/lib/muster for
// root, ~/.muster; "" where HOME is not set and nothing else says it.
std::string DefaultDataDir();
// The server that --kubeconfig, --context and the files below lead to.
Result<client::ConnectionConfig> FindConnection(const Arguments& arguments);
// The kubeconfig files that Open looks at, in order; each entry may be a list as in $KUBECONFIG.
std::vector<std::vector<std::string>> KubeconfigCandidates(const std::string& flag);

}  // namespace muster::cli
