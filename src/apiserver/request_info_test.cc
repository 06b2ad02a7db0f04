#include "apiserver/request_info.h"

#include <gtest/gtest.h>

namespace muster::apiserver {
namespace {

RequestInfo Parse(std::string method, std::string target) {
  net::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  Result<RequestInfo> info = ParseRequestInfo(request);
  EXPECT_TRUE(info.has_value());
  return info.value_or(RequestInfo());
}

TEST(RequestInfo, ReadsNamespacedSubresources) {
  const RequestInfo info = Parse("GET", "/api/v1/namespaces/d/pods/x/log?follow=true");
  EXPECT_TRUE(info.is_resource);
  EXPECT_EQ(info.verb, "get");
  EXPECT_EQ(info.resource, "pods");
  EXPECT_EQ(info.subresource, "log");
  EXPECT_EQ(info.ns, "d");
  EXPECT_EQ(info.name, "x");
  EXPECT_TRUE(info.query.GetBool("follow"));
}

TEST(RequestInfo, ANamespaceIsAResourceOfItsOwn) {
  const RequestInfo plain = Parse("PUT", "/api/v1/namespaces/d");
  EXPECT_EQ(plain.resource, "namespaces");
  EXPECT_EQ(plain.name, "d");
  const RequestInfo finalize = Parse("PUT", "/api/v1/namespaces/d/finalize");
  EXPECT_EQ(finalize.resource, "namespaces");
  EXPECT_EQ(finalize.subresource, "finalize");
  const RequestInfo pods = Parse("GET", "/api/v1/namespaces/d/pods");
  EXPECT_EQ(pods.resource, "pods");
  EXPECT_EQ(pods.verb, "list");
}

TEST(RequestInfo, MapsMethodsToVerbs) {
  const std::string one = "/apis/g/v1/things/x", all = "/apis/g/v1/things";
  EXPECT_EQ(Parse("GET", all).verb, "list");
  EXPECT_EQ(Parse("GET", all + "?watch=1").verb, "watch");
  EXPECT_EQ(Parse("GET", all + "?watch=false").verb, "list");
  EXPECT_EQ(Parse("POST", all).verb, "create");
  EXPECT_EQ(Parse("PUT", one).verb, "update");
  EXPECT_EQ(Parse("PATCH", one).verb, "patch");
  EXPECT_EQ(Parse("DELETE", one).verb, "delete");
  EXPECT_EQ(Parse("DELETE", all).verb, "deletecollection");
  EXPECT_EQ(Parse("GET", "/healthz").verb, "get");
  EXPECT_FALSE(Parse("GET", "/apis/g/v1").is_resource);
}

TEST(RequestInfo, RefusesBrokenNumbers) {
  const RequestInfo info = Parse("GET", "/api/v1/pods?limit=abc");
  EXPECT_FALSE(IntParameter(info.query, "limit").has_value());
  EXPECT_EQ(*IntParameter(info.query, "timeoutSeconds"), std::nullopt);
}

}  // namespace
}  // namespace muster::apiserver
