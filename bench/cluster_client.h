// bench/cluster_client.h
//
// The load side of the benches that drive a running `muster up`: keys from its data directory, a
// loop, an HTTP client that keeps a number of requests in flight.
//
// Thread: the caller's; Run() runs its loop.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "json/value.h"
#include "loop/asio_loop.h"
#include "net/client.h"
#include "net/io_threads.h"

namespace muster::bench {

inline constexpr uint16_t kApiPort = 6443;
inline constexpr int kClients = 64;  // requests in flight

double Seconds(Duration duration);
double Percentile(std::vector<double> values, double share);

// A pod as a training job makes it: about 3 KB with what the server adds. `node_kind` "" runs
// anywhere; another one asks for a label that no node has.
json::Value TrainingPod(int index, const std::string& node_kind);

class ClusterClient {
 public:
  explicit ClusterClient(const std::string& data_dir);

  // Sends request(0) .. request(count - 1), `in_flight` at a time, and calls on_answer for each;
  // returns seconds. REQUIRES: no other Send or stream is running on the loop.
  double SendAll(int count, int in_flight, const std::function<net::Request(int)>& request,
                 const std::function<void(int, const net::Response&)>& on_answer);
  // SendAll of creates; each must be answered 201.
  double CreateAll(const std::string& collection, int count,
                   const std::function<json::Value(int)>& object);
  net::Response Fetch(const std::string& target);

  AsioLoop loop;
  net::IoThreads io{1};
  net::Endpoint endpoint{true, "127.0.0.1", kApiPort, ""};
  std::unique_ptr<net::HttpClient> http;
};

net::Request MakeRequest(std::string method, std::string target, std::string body = "",
                         std::string content_type = "application/json");

}  // namespace muster::bench
