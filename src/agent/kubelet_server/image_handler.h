// src/agent/kubelet_server/image_handler.h
//
// The part of the kubelet API that `muster image` uses, through nodes/NAME/proxy:
//
//   GET  /images                                  {"images": [{id, names, digests, usedBy, ...}]}
//   POST /images/pull    {"image": "nginx"}
//   POST /images/load    {"path": "/x.tar", "name": "..."}     a file of this node
//   POST /images/remove  {"image": "nginx"}
//
// What takes longer than kImageAnswerTime is answered with 202: the same request asks again how it
// went. The others are answered with 200 and {"images": [...]}, or with a status and a text.
//
// Life cycle: one per agent; the cache outlives it.
// Thread:     the loop thread.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/images/image_cache.h"
#include "client/lifetime.h"
#include "json/value.h"
#include "loop/loop.h"
#include "net/http.h"

namespace muster::agent {

inline constexpr Duration kImageAnswerTime = seconds(10);
inline constexpr Duration kImageResultTime = minutes(1);  // kept for who asks again
inline constexpr size_t kMaxImageRequests = 64;           // under way or not asked for yet

class ImageHandler {
 public:
  ImageHandler(Loop& loop, ImageCache& cache) : loop_(loop), cache_(cache) {}
  // `what` follows "/images": "" or "pull", ...
  void Handle(const net::Request& request, const std::string& what, net::ResponseWriterPtr writer);

 private:
  using Done = Function<void(Result<std::vector<ImageRecord>>)>;
  struct Work {
    std::optional<Result<std::vector<ImageRecord>>> result;
    std::vector<net::ResponseWriterPtr> waiting;
  };

  Status Start(const std::string& what, const json::Value& request, Done done);
  void OnDone(const std::string& key, Result<std::vector<ImageRecord>> result);
  void Answer(net::ResponseWriter& writer, const Result<std::vector<ImageRecord>>& result) const;

  Loop& loop_;
  ImageCache& cache_;
  std::map<std::string, Work> works_;  // by what is asked
  client::Lifetime lifetime_;
};

}  // namespace muster::agent
