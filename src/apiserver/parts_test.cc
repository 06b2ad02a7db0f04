// The small parts: negotiation, metrics, addresses, continue tokens, stored form.

#include <algorithm>

#include <gtest/gtest.h>

#include "apiserver/discovery/discovery.h"
#include "apiserver/errors.h"
#include "apiserver/fake_writer.h"
#include "apiserver/kinds/ip_allocator.h"
#include "apiserver/kinds/node_port_allocator.h"
#include "apiserver/list_parameters.h"
#include "apiserver/metrics.h"
#include "apiserver/negotiation.h"
#include "apiserver/server.h"
#include "apiserver/stored_object.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

TEST(Errors, AlwaysHaveDetails) {
  const json::Value status = StatusObject(NoSuchResourceError());
  EXPECT_EQ(status["code"].AsInt(), 404);
  EXPECT_TRUE(status["details"].IsObject()) << json::Write(status);
}

TEST(Negotiation, TakesTheFirstFormThatWeWrite) {
  EXPECT_EQ(Negotiate("", true)->form, AnswerForm::kObject);
  EXPECT_EQ(Negotiate("*/*", true)->encoding, Encoding::kJson);
  const Result<Negotiated> table = Negotiate(
      "application/json;as=Table;v=v1;g=meta.k8s.io,application/"
      "json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
      true);
  EXPECT_EQ(table->form, AnswerForm::kTable);
  EXPECT_EQ(table->meta_version, "v1");
  EXPECT_EQ(Negotiate("application/yaml", true)->encoding, Encoding::kYaml);
  EXPECT_EQ(Negotiate("application/json;q=0.9, application/yaml;q=0.1", true)->encoding,
            Encoding::kJson);
  EXPECT_FALSE(Negotiate("application/json;as=Table;v=v9;g=meta.k8s.io", true).has_value());
}

TEST(Negotiation, ProtobufOnlyForWhatHasAMessage) {
  constexpr std::string_view kBoth = "application/vnd.kubernetes.protobuf,application/json";
  EXPECT_EQ(Negotiate(kBoth, true)->encoding, Encoding::kProtobuf);
  EXPECT_EQ(Negotiate(kBoth, false)->encoding, Encoding::kJson);
  EXPECT_EQ(Negotiate("application/json,application/vnd.kubernetes.protobuf", true)->encoding,
            Encoding::kJson);
  EXPECT_EQ(
      Negotiate("application/json;q=0.5, application/vnd.kubernetes.protobuf", true)->encoding,
      Encoding::kProtobuf);
  EXPECT_EQ(Negotiate("application/vnd.kubernetes.protobuf;stream=watch", true)->encoding,
            Encoding::kProtobuf);
  EXPECT_FALSE(Negotiate("application/vnd.kubernetes.protobuf", false).has_value());
  // A Table is text, metadata is never custom.
  constexpr std::string_view kTable =
      "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io";
  EXPECT_FALSE(Negotiate(kTable, true).has_value());
  EXPECT_EQ(Negotiate(std::string(kTable) + ",application/json;as=Table;v=v1;g=meta.k8s.io", true)
                ->encoding,
            Encoding::kJson);
  const Result<Negotiated> metadata = Negotiate(
      "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", false);
  EXPECT_EQ(metadata->encoding, Encoding::kProtobuf);
  EXPECT_EQ(metadata->form, AnswerForm::kPartialMetadata);
}

TEST(Negotiation, WhatIsNoObjectOfTheResourceIsWrittenAsTheAnswerWouldBe) {
  EXPECT_TRUE(PrefersProtobuf("application/vnd.kubernetes.protobuf,application/json"));
  EXPECT_FALSE(PrefersProtobuf("application/json,application/vnd.kubernetes.protobuf"));
  EXPECT_FALSE(PrefersProtobuf("*/*, application/vnd.kubernetes.protobuf;q=0.5"));
  EXPECT_FALSE(PrefersProtobuf(""));
  EXPECT_TRUE(PrefersProtobuf("image/png, application/vnd.kubernetes.protobuf"));
  EXPECT_FALSE(
      PrefersProtobuf("application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,"
                      "application/json"));
}

TEST(Metrics, RendersPrometheusText) {
  Metrics metrics;
  metrics.Counter("requests_total", "Requests.").Add({{"verb", "GET"}, {"path", "a\"b"}}, 2);
  HistogramFamily& durations = metrics.Histogram("seconds", "Durations.", {0.1, 1});
  durations.Observe({}, 0.05);
  durations.Observe({}, 0.5);
  durations.Observe({}, 5);
  metrics.Callback("up", "Up.", [] { return 1.0; });
  const std::string text = metrics.Render();
  EXPECT_NE(text.find("requests_total{verb=\"GET\",path=\"a\\\"b\"} 2\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("seconds_bucket{le=\"0.1\"} 1\nseconds_bucket{le=\"1\"} "
                      "2\nseconds_bucket{le=\"+Inf\"} 3\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("seconds_count 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# TYPE up gauge\nup 1\n"), std::string::npos) << text;
}

TEST(Metrics, BoundsTheNumberOfSeries) {
  CounterFamily family("x", "X.", "counter");
  for (size_t i = 0; i < kMaxSeries + 10; ++i) family.Add({{"i", std::to_string(i)}});
  EXPECT_EQ(family.Value({{"overflow", "true"}}), 10);
}

TEST(IpAllocator, GivesEachAddressOnce) {
  Result<IpAllocator> range = IpAllocator::Make("10.0.0.0/29");
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->First(), "10.0.0.1");
  EXPECT_TRUE(range->Allocate("10.0.0.1").ok());
  EXPECT_FALSE(range->Allocate("10.0.0.1").ok());
  EXPECT_FALSE(range->Allocate("10.0.0.0").ok());
  EXPECT_FALSE(range->Allocate("10.0.0.7").ok());
  EXPECT_FALSE(range->Allocate("10.0.1.1").ok());
  EXPECT_FALSE(range->Allocate("rubbish").ok());
  for (const char* next : {"10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"}) {
    EXPECT_EQ(range->AllocateNext().value_or(""), next);
  }
  EXPECT_FALSE(range->AllocateNext().has_value());
  range->Release("10.0.0.3");
  EXPECT_EQ(range->AllocateNext().value_or(""), "10.0.0.3");
  EXPECT_FALSE(IpAllocator::Make("10.0.0.0").has_value());
  EXPECT_FALSE(IpAllocator::Make("10.0.0.0/31").has_value());
}

TEST(NodePortAllocator, GivesEachPortOnceAndTheFirstOnesLast) {
  NodePortAllocator ports;
  EXPECT_TRUE(ports.Allocate(30000));
  EXPECT_FALSE(ports.Allocate(30000));
  std::set<int64_t> given;
  for (int64_t port = kFirstChosenNodePort; port <= kLastNodePort; ++port)
    given.insert(ports.AllocateNext().value_or(0));
  EXPECT_EQ(*given.begin(), kFirstChosenNodePort);
  EXPECT_EQ(*given.rbegin(), kLastNodePort);
  for (int64_t port = kFirstNodePort + 1; port < kFirstChosenNodePort; ++port)
    EXPECT_EQ(ports.AllocateNext(), port);
  EXPECT_EQ(ports.AllocateNext(), std::nullopt);
  ports.Release(30100);
  EXPECT_EQ(ports.AllocateNext(), 30100);
}

TEST(ContinueToken, ReadsBackWhatItWrote) {
  const std::string text = EncodeContinue({17, "/registry/core/pods/a/b"});
  const Result<ContinueToken> token = DecodeContinue(text, "/registry/core/pods/");
  ASSERT_TRUE(token.has_value());
  EXPECT_EQ(token->revision, 17);
  EXPECT_EQ(token->after, "/registry/core/pods/a/b");
  EXPECT_FALSE(DecodeContinue(text, "/registry/core/secrets/").has_value());
  EXPECT_FALSE(DecodeContinue("rubbish", "").has_value());
}

TEST(StoredObject, KeepsMetadataFirstWithAPlaceForTheRevision) {
  const schema::KindPtr pods = schema::Registry::BuiltIn().Find("", "v1", "pods");
  const json::Value pod =
      *json::Parse(R"({"apiVersion":"v1","kind":"Pod","spec":{"nodeName":"n1"},"metadata":{
      "labels":{"a":"b"},"managedFields":[{}],"selfLink":"x","name":"p","uid":"u",
        "resourceVersion":"7"}})");
  const StoredForm form = EncodeStored(*pods, pod);
  EXPECT_TRUE(form.bytes.starts_with(
      "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"resourceVersion\":\"\""));
  EXPECT_EQ(form.bytes.substr(form.revision_slot, 2), "\"\"");
  EXPECT_EQ(form.bytes.find("managedFields"), std::string::npos);
  EXPECT_EQ(form.bytes.substr(kMetadataOffset + form.meta->metadata_bytes),
            ",\"spec\":{\"nodeName\":\"n1\"}}");
  const json::Value wire = *json::Parse(WireObject(*pods, form.bytes));
  EXPECT_EQ(wire.members()[0].first, "kind");
  EXPECT_EQ(wire["apiVersion"].AsString(), "v1");
  EXPECT_EQ(DecodeStored(*pods, form.bytes), wire);
  EXPECT_EQ(json::Write(StoredTree(*pods, pod, 7)),
            json::Write(wire.SetPath({"metadata", "resourceVersion"}, "7")));

  // What is loaded from disk gets the same facts as what was just written.
  const auto loaded = MakeDecorator()(ObjectKey(*pods, "d", "p"), form.bytes);
  const auto& meta = static_cast<const ObjectMeta&>(*loaded);
  EXPECT_EQ(meta.metadata_bytes, form.meta->metadata_bytes);
  EXPECT_EQ(meta.labels, form.meta->labels);
  EXPECT_EQ(meta.fields, form.meta->fields);
  size_t node_name = 0;
  while (pods->selectable_fields[node_name] != "spec.nodeName") ++node_name;
  EXPECT_EQ(meta.fields.size(), pods->selectable_fields.size());
  EXPECT_EQ(meta.fields[node_name], "n1");
  EXPECT_EQ(meta.Label("a"), "b");
  EXPECT_EQ(meta.Label("b"), std::nullopt);  // a value is no name
}

TEST(Versions, ComeInKubernetesOrder) {
  std::vector<std::string> versions = {"v1beta1", "foo", "v2", "v1alpha2", "v1", "v1beta2", "v11"};
  std::sort(versions.begin(), versions.end(), VersionBefore);
  EXPECT_EQ(versions,
            (std::vector<std::string>{"v11", "v2", "v1", "v1beta2", "v1beta1", "v1alpha2", "foo"}));
}

}  // namespace
}  // namespace muster::apiserver
