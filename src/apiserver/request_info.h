// src/apiserver/request_info.h
//
// RequestInfo: what a URL and a method mean. "GET /api/v1/namespaces/d/pods/x/log?follow=true" is
// verb get, resource pods, subresource log, namespace d, name x.
//
// Life cycle: a value, one per request.
// Thread:     any.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "net/http.h"
#include "net/url.h"

namespace muster::apiserver {

struct RequestInfo {
  std::string method;              // "GET"
  std::string path;                // decoded, without the query
  std::vector<std::string> parts;  // of the path
  net::Query query;

  // get, list, watch, create, update, patch, delete, deletecollection; for other URLs the method in
  // lower case.
  std::string verb;
  bool is_resource = false;  // below: only for /api/V/... and /apis/G/V/... with a resource
  std::string group, version, resource, subresource, ns, name;
  std::string rest;  // what follows the subresource (proxy paths), joined by '/'

  // "/api/v1" or "/apis/apps/v1", whether or not a resource follows.
  bool HasGroupVersion() const { return !version.empty(); }
};

Result<RequestInfo> ParseRequestInfo(const net::Request& request);

// nullopt if the parameter is absent or empty; BadRequest if it is not a decimal integer.
Result<std::optional<int64_t>> IntParameter(const net::Query& query, std::string_view name);

}  // namespace muster::apiserver
