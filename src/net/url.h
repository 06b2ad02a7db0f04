// src/net/url.h
//
// URLs and request targets: splitting and percent decoding, nothing more.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "net/client.h"

namespace muster::net {

// Decoded query parameters in the order written; a name may occur several times (exec's command=).
class Query {
 public:
  void Add(std::string name, std::string value) {
    list_.emplace_back(std::move(name), std::move(value));
  }
  std::string_view Get(std::string_view name) const;  // first; "" if absent
  std::vector<std::string> GetAll(std::string_view name) const;
  bool Has(std::string_view name) const;
  // "true", "1" and a bare name are true.
  bool GetBool(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& list() const { return list_; }
  std::string Encode() const;  // "a=1&b=x%20y", no "?"

 private:
  std::vector<std::pair<std::string, std::string>> list_;
};

struct SplitTarget {
  std::string path;  // still encoded, without the query
  std::vector<std::string>
      segments;  // decoded: "/api/v1/pods" -> {"api", "v1", "pods"}; empty parts are left out
  Query query;
};

inline constexpr size_t kMaxQueryParameters = 1000;

// BadRequest for a target that is not a path, a broken escape, a decoded '/', NUL or dot segment in
// a path segment.
Result<SplitTarget> ParseTarget(std::string_view target);

// "https://host:port/prefix" -> endpoint and "/prefix" ("" if none). IPv6 hosts in brackets. Ports
// default to 443/80.
struct ParsedUrl {
  Endpoint endpoint;
  std::string path;  // with query, as written
};
Result<ParsedUrl> ParseUrl(std::string_view url);

}  // namespace muster::net
