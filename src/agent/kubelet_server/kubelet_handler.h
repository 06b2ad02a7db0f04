// src/agent/kubelet_server/kubelet_handler.h
//
// The kubelet API: what the API server asks a node for.
//
//   GET  /healthz
//   GET  /metrics                                   the node's GPUs (gpu/gpu_metrics.h)
//   GET  /stats/summary                             stats/usage_sampler.h
//   GET  /pods                                      v1 PodList
//   GET  /containerLogs/{ns}/{pod}/{container}
//   ?follow&tailLines&previous&timestamps&sinceSeconds&sinceTime&limitBytes GET|POST
//   /exec/{ns}/{pod}/{container}           ?command=&stdin&stdout&stderr&tty   (WebSocket)
//   GET|POST /images...                             image_handler.h
//
// Thread:     the loop thread.
// Invariants: only a peer whose certificate names the API server, or an administrator, is answered.

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "agent/kubelet_server/image_handler.h"
#include "agent/pod_workers/pod_manager.h"
#include "agent/runtime/pod_runtime.h"
#include "loop/asio_loop.h"
#include "net/http.h"

namespace muster::agent {

class KubeletHandler final : public net::Handler {
 public:
  // REQUIRES: all outlive the handler.
  KubeletHandler(std::string data_dir, AsioLoop& loop, Pool& pool, PodRuntime& runtime,
                 const PodManager& pods, ImageCache* images = nullptr)
      : data_dir_(std::move(data_dir)), loop_(loop), pool_(pool), runtime_(runtime), pods_(pods) {
    if (images != nullptr) images_.emplace(loop, *images);
  }

  // What /metrics answers; nothing before.
  using Metrics = std::function<void(Function<void(std::string)> answer)>;
  void OnMetrics(Metrics metrics) { metrics_ = std::move(metrics); }

  // What /stats/summary answers; nothing before.
  using Summary = std::function<void(Function<void(json::Value)> answer)>;
  void OnSummary(Summary summary) { summary_ = std::move(summary); }

  void Handle(net::Request request, net::ResponseWriterPtr writer) override;

 private:
  struct Call;  // a parsed request
  void Logs(const Call& call, net::ResponseWriterPtr writer);
  void Exec(const Call& call, const net::Request& request, net::ResponseWriterPtr writer);
  void ListPods(net::ResponseWriterPtr writer);

  std::string data_dir_;
  AsioLoop& loop_;
  Pool& pool_;
  PodRuntime& runtime_;
  const PodManager& pods_;
  std::optional<ImageHandler> images_;
  Metrics metrics_;
  Summary summary_;
};

}  // namespace muster::agent
