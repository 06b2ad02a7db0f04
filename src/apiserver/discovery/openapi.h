// src/apiserver/discovery/openapi.h
//
// OpenApi: /openapi/v3 and the documents that it points to. kubectl validates manifests and
// explains fields by them. /openapi/v2 describes nothing: kubectl needs it for `kind: List` and
// then leaves validation to the server.
//
// Life cycle: a member of the server. A document is rendered at the first request after its kinds
//             changed, on the pool.
// Thread:     the loop thread.
// Invariants: an index and the documents that it names have the same content hash; a document's URL
//             with its hash may be cached for ever.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/call.h"
#include "apiserver/resource_registry.h"
#include "loop/loop.h"

namespace muster::apiserver {

class OpenApi {
 public:
  // `pool` may be nullptr: documents are then rendered on the loop.
  OpenApi(Loop& loop, Pool* pool, const ResourceRegistry& registry, std::string version);

  // Answers GET /openapi/v2, /openapi/v3 and below; false for another path.
  bool Handle(const CallPtr& call);

 private:
  struct Document {
    std::string path;                    // "api/v1"
    std::vector<schema::KindPtr> kinds;  // that it describes
    std::string json;
    std::string hash;
  };
  using DocumentPtr = std::shared_ptr<const Document>;
  using Documents = std::map<std::string, DocumentPtr>;  // by path

  static DocumentPtr Render(const std::string& path, const std::vector<schema::KindPtr>& kinds);
  // Runs `then` once the documents describe the registry as it is.
  void Refresh(std::function<void()> then);
  void ReplyIndex(Call& call) const;
  void ReplyDocument(Call& call, const std::string& path) const;

  Loop& loop_;
  Pool* pool_;
  const ResourceRegistry& registry_;
  std::string version_;  // of the API
  Documents documents_;
  uint64_t revision_ = 0;  // of the registry that the documents describe
  std::vector<std::function<void()>> waiting_;
  bool rendering_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace muster::apiserver
