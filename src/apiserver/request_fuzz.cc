// The target of a request: what it means, its list parameters, its continue token. What was split
// can be put together again, and a token that we take is one that we could have given.

#include "apiserver/list_parameters.h"
#include "apiserver/request_info.h"
#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "base/strings.h"

namespace {

using muster::apiserver::ContinueToken;
using muster::apiserver::DecodeContinue;
using muster::apiserver::EncodeContinue;

constexpr std::string_view kPrefix = "/registry/core/pods/";

void CheckToken(std::string_view text) {
  const auto token = DecodeContinue(text, kPrefix);
  if (!token) return;
  CHECK(token->after.starts_with(kPrefix));
  const auto again = DecodeContinue(EncodeContinue(*token), kPrefix);
  CHECK(again.has_value() && again->revision == token->revision && again->after == token->after);
}

void CheckQuery(const muster::net::Query& query) {
  const auto again = muster::net::ParseTarget("/?" + query.Encode());
  CHECK(again.has_value() && again->query.list() == query.list());
}

}  // namespace

FUZZ_TARGET(request, input) {
  muster::FuzzInput lines(input);
  muster::net::Request request;
  request.method = lines.Line();
  request.target = lines.Rest();
  CheckToken(request.target);
  (void)muster::net::ParseUrl(request.target);
  CHECK(muster::PercentDecode(muster::PercentEncode(request.target), true) == request.target);
  const auto info = muster::apiserver::ParseRequestInfo(request);
  if (!info) return;
  CHECK(!info->is_resource || (!info->version.empty() && !info->resource.empty()));
  for (const std::string& part : info->parts)
    CHECK(!part.empty() && part != ".." && part.find('/') == std::string::npos);
  CheckQuery(info->query);
  for (const bool watch : {false, true}) {
    const auto list = muster::apiserver::ParseListParameters(*info, watch);
    if (list) CHECK(list->limit >= 0 && list->timeout_seconds >= 0);
  }
  CheckToken(info->query.Get("continue"));
}
