// src/apiserver/list_parameters.h
//
// ListParameters: limit, continue, resourceVersion, resourceVersionMatch, sendInitialEvents, ... of
// LIST and WATCH, checked by upstream's rules (k8s.io/apimachinery
// pkg/apis/meta/internalversion/validation). Continue tokens.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/request_info.h"
#include "base/status.h"
#include "store/store.h"

namespace muster::apiserver {

// A limited LIST with selectors looks at so many entries at most and then answers with fewer
// objects than the limit and a token to go on: the loop stays free.
inline constexpr size_t kMaxSearchedEntries = 20'000;

enum class RevisionMatch : uint8_t { kUnset, kNotOlderThan, kExact };

struct ListParameters {
  int64_t limit = 0;                        // 0: none
  std::optional<store::Revision> revision;  // resourceVersion; nullopt when absent
  RevisionMatch match = RevisionMatch::kUnset;
  std::string continue_token;
  bool bookmarks = false;
  std::optional<bool> send_initial_events;
  int64_t timeout_seconds = 0;  // 0: none given
};
// BadRequest or Invalid.
Result<ListParameters> ParseListParameters(const RequestInfo& info, bool watch);

// Where a limited LIST goes on: opaque to clients.
struct ContinueToken {
  store::Revision revision = 0;  // of the first chunk; kLatest: whatever is there now
  std::string after;             // key of the last object sent
  static constexpr store::Revision kLatest = -1;
};
std::string EncodeContinue(const ContinueToken& token);
// BadRequest for anything that EncodeContinue did not make, or whose key lies outside `prefix`.
Result<ContinueToken> DecodeContinue(std::string_view text, std::string_view prefix);

}  // namespace muster::apiserver
