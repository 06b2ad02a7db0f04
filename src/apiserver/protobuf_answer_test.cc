#include "apiserver/protobuf_answer.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "apiserver/apiserver_testing.h"
#include "apiserver/list_body.h"
#include "apiserver/stored_object.h"
#include "apiserver/watch/watcher.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/write.h"
#include "schema/golden_vectors_testing.h"
#include "schema/protobuf_codec.h"
#include "schema/registry.h"
#include "schema/wire.h"

namespace muster::apiserver {
namespace {

constexpr char kProtobuf[] = "application/vnd.kubernetes.protobuf";
constexpr char kConfigMaps[] = "/api/v1/namespaces/default/configmaps";

net::Headers Accept(std::string types) {
  net::Headers headers;
  headers.Add("Accept", std::move(types));
  return headers;
}

json::Value Decode(std::string_view bytes) {
  Result<json::Value> value = schema::DecodeProtobuf(bytes);
  EXPECT_TRUE(value.has_value()) << value.error().message();
  return value.value_or(json::Value());
}

// What the codec makes of a JSON answer is what the same question brings in protobuf.
void ExpectSame(TestServer& test, const std::string& target) {
  const auto text = test.Send("GET", target);
  const auto bytes = test.Send("GET", target, "", Accept(kProtobuf));
  ASSERT_EQ(bytes->status, text->status) << target;
  EXPECT_EQ(bytes->headers.Get("Content-Type"), kProtobuf) << target;
  const Result<std::string> expected = schema::EncodeProtobuf(test.Json(*text));
  ASSERT_TRUE(expected.has_value()) << target << ": " << expected.error().message();
  EXPECT_TRUE(bytes->body == *expected)
      << target << "\nwant " << text->body << "\nhave " << json::Write(Decode(bytes->body));
}

void Create(TestServer& test, const std::string& name, const std::string& data = "") {
  const auto writer = test.Send(
      "POST", kConfigMaps,
      json::Write(json::Obj(
          {{"metadata", json::Obj({{"name", name}, {"labels", json::Obj({{"odd", data}})}})},
           {"data", json::Obj({{"k", data}})}})));
  ASSERT_EQ(writer->status, 201) << writer->body;
}

// The events of a watch in protobuf: {type, object}.
std::vector<json::Value> Events(std::string_view body) {
  std::vector<json::Value> events;
  while (body.size() >= 4) {
    size_t size = 0;
    for (int i = 0; i < 4; ++i) size = size << 8 | static_cast<uint8_t>(body[i]);
    body.remove_prefix(4);
    EXPECT_LE(size, body.size());
    schema::WireReader event(body.substr(0, size));
    body.remove_prefix(std::min(size, body.size()));
    json::Value decoded = json::Obj();
    while (const std::optional<schema::WireField> field = event.Next()) {
      if (field->number == 1) decoded = decoded.Set("type", field->bytes);
      if (field->number != 2) continue;
      const std::optional<schema::WireField> raw = schema::WireReader(field->bytes).Next();
      EXPECT_TRUE(raw && raw->number == 1);
      decoded = decoded.Set("object", Decode(raw->bytes));
    }
    events.push_back(decoded);
  }
  EXPECT_TRUE(body.empty());
  return events;
}

using ProtobufAnswer = schema::GoldenVectorsTest;

// Stored and read back, each of upstream's objects is the same.
TEST_F(ProtobufAnswer, OfEveryStoredGoldenVectorIsTheVector) {
  size_t kinds = 0;
  for (const Vector& vector : Known()) {
    const Result<schema::ProtobufEnvelope> envelope = schema::ReadProtobufEnvelope(vector.protobuf);
    const std::string_view version = envelope->api_version;
    const size_t slash = version.find('/');
    const bool core = slash == std::string_view::npos;
    const schema::KindPtr kind = schema::Registry::BuiltIn().FindKind(
        core ? "" : version.substr(0, slash), core ? version : version.substr(slash + 1),
        envelope->kind);
    if (kind == nullptr || kind->conversion != nullptr || !HasProtobuf(*kind)) continue;
    ++kinds;
    // The revision is the store's; selfLink and managedFields are not stored.
    json::Value object = Decode(vector.protobuf);
    json::Value metadata = object["metadata"];
    for (const char* left_out : {"resourceVersion", "selfLink", "managedFields"})
      metadata = metadata.Remove(left_out);
    object = object.Set("metadata", metadata);
    StoredForm form = EncodeStored(*kind, object);
    store::Entry entry;
    entry.value = std::make_shared<const std::string>(std::move(form.bytes));
    entry.meta = form.meta;
    AnswerFormat format;
    format.kind = kind;
    format.encoding = Encoding::kProtobuf;
    std::string answer;
    ASSERT_TRUE(AppendObject(answer, format, entry, Time()).ok()) << vector.name;
    EXPECT_EQ(Decode(answer), object) << vector.name;
    EXPECT_EQ(answer, schema::EncodeProtobuf(object).value_or("")) << vector.name;
  }
  EXPECT_GE(kinds, 30u);
}

// What no vector vouches for is not answered in protobuf: clients cannot tell that it is wrong.
TEST_F(ProtobufAnswer, EveryKindThatHasItHasAGoldenVector) {
  std::set<std::string> vouched_for;
  for (const Vector& vector : Known()) {
    const Result<schema::ProtobufEnvelope> envelope = schema::ReadProtobufEnvelope(vector.protobuf);
    vouched_for.insert(envelope->api_version + " " + envelope->kind);
  }
  for (const schema::KindPtr& kind : schema::Registry::BuiltIn().kinds()) {
    if (!HasProtobuf(*kind)) continue;
    EXPECT_TRUE(vouched_for.contains(kind->GroupVersion() + " " + kind->kind)) << kind->kind;
  }
}

TEST(ProtobufAnswers, ListsOfEveryBuiltInKindAndTheirObjects) {
  TestServer test;
  Create(test, "a", "b");
  size_t lists = 0, objects = 0;
  for (const schema::KindPtr& kind : schema::Registry::BuiltIn().kinds()) {
    if (kind->create_only || !HasProtobuf(*kind)) continue;
    const std::string root = (kind->group.empty() ? "/api/" : "/apis/") + kind->GroupVersion();
    const std::string target = root + "/" + kind->plural;
    const auto list = test.Send("GET", target);
    if (list->status != 200) continue;
    ++lists;
    ExpectSame(test, target);
    const json::Value listed = test.Json(*list);
    for (const json::Value& item : listed["items"].items()) {
      const json::Value& metadata = item["metadata"];
      const std::string ns = kind->namespaced ? "/namespaces/" + metadata["namespace"].Str() : "";
      if (++objects % 5 == 0 || objects < 50)
        ExpectSame(test, root + ns + "/" + kind->plural + "/" + metadata["name"].Str());
    }
  }
  EXPECT_GE(lists, 30u);
  EXPECT_GE(objects, 30u);
}

TEST(ProtobufAnswers, ErrorsAndWhatIsNoObjectOfTheResource) {
  TestServer test;
  ExpectSame(test, std::string(kConfigMaps) + "/missing");
  const auto wrong = test.Send("POST", kConfigMaps, "{", Accept(kProtobuf));
  EXPECT_EQ(wrong->status, 400);
  EXPECT_EQ(Decode(wrong->body)["reason"].Str(), "BadRequest");
  Create(test, "a");
  const auto gone = test.Send("DELETE", std::string(kConfigMaps) + "/a", "", Accept(kProtobuf));
  EXPECT_EQ(gone->status, 200);
  EXPECT_EQ(Decode(gone->body)["status"].Str(), "Success");
  // There is no message for the version.
  EXPECT_EQ(test.Send("GET", "/version", "", Accept(kProtobuf))->headers.Get("Content-Type"),
            "application/json");
}

TEST(ProtobufAnswers, ALongListIsEncodedPieceByPieceAndSaysItsLength) {
  TestServer test;
  const std::string target = std::string(kConfigMaps) + "?labelSelector=odd%3Dx";
  for (int i = 0; i < 40; ++i) {
    const auto writer =
        test.Send("POST", kConfigMaps,
                  "{\"metadata\":{\"name\":\"c" + std::to_string(i) + "\",\"labels\":{\"odd\":\"" +
                      (i % 2 == 0 ? "x" : "y") + "\"}},\"data\":{\"k\":\"" +
                      std::string(kKeptListBytes / 8, 'a') + "\"}}");
    ASSERT_EQ(writer->status, 201) << writer->body;
  }
  for (const std::string& each : {std::string(kConfigMaps), target}) ExpectSame(test, each);
  const auto page = test.Send("GET", std::string(kConfigMaps) + "?limit=15", "", Accept(kProtobuf));
  const json::Value list = Decode(page->body);
  EXPECT_EQ(list["items"].size(), 15u);
  EXPECT_EQ(list["metadata"]["remainingItemCount"].AsInt(), 25);
  const auto rest = test.Send(
      "GET", std::string(kConfigMaps) + "?limit=100&continue=" + list["metadata"]["continue"].Str(),
      "", Accept(kProtobuf));
  EXPECT_EQ(Decode(rest->body)["items"].size(), 25u);
}

TEST(ProtobufAnswers, ALongListIsMeasuredOnThePool) {
  SimPool pool;
  ServerOptions options;
  options.pool = &pool;
  TestServer test(std::move(options));
  for (size_t i = 0; i <= kMeasuredOnLoop; ++i) Create(test, "c" + std::to_string(i), "x");
  const auto writer = test.Begin("GET", kConfigMaps, "", Accept(kProtobuf));
  test.loop.RunReady();
  EXPECT_EQ(Decode(writer->body)["items"].size(), kMeasuredOnLoop + 1);
  ExpectSame(test, kConfigMaps);
  ExpectSame(test, std::string(kConfigMaps) + "?labelSelector=odd%3Dy");
}

TEST(ProtobufAnswers, MetadataAloneAlsoOfCustomResources) {
  TestServer test;
  Create(test, "a", "x");
  const std::string partial = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
  const auto bytes =
      test.Send("GET", std::string(kConfigMaps) + "/a", "", Accept(kProtobuf + partial));
  const Result<schema::ProtobufEnvelope> envelope = schema::ReadProtobufEnvelope(bytes->body);
  ASSERT_TRUE(envelope.has_value());
  EXPECT_EQ(envelope->kind, "PartialObjectMetadata");
  EXPECT_EQ(envelope->api_version, "meta.k8s.io/v1");
  // The metadata of a ConfigMap has the same number, and its other fields are not there.
  const schema::Schema& configmap =
      *schema::Registry::BuiltIn().FindSchema("io.k8s.api.core.v1.ConfigMap");
  const auto text = test.Send("GET", std::string(kConfigMaps) + "/a");
  EXPECT_EQ((*schema::DecodeMessage(configmap, envelope->raw))["metadata"],
            test.Json(*text)["metadata"]);
  EXPECT_FALSE(schema::DecodeMessage(configmap, envelope->raw)->Has("data"));
  const auto list = test.Send("GET", kConfigMaps, "", Accept(kProtobuf + partial));
  const Result<schema::ProtobufEnvelope> items = schema::ReadProtobufEnvelope(list->body);
  ASSERT_TRUE(items.has_value()) << list->body;
  EXPECT_EQ(items->kind, "PartialObjectMetadataList");
  const schema::Schema* message = schema::Registry::BuiltIn().FindMessage("v1", "ConfigMapList");
  ASSERT_NE(message, nullptr);
  const json::Value listed = *schema::DecodeMessage(*message, items->raw);
  ASSERT_EQ(listed["items"].size(), 1u);
  EXPECT_EQ(listed["items"].items()[0]["metadata"]["name"].Str(), "a");
  EXPECT_FALSE(listed["items"].items()[0].Has("data"));
  // A custom kind has no message, and its objects' metadata has.
  const std::string custom = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs";
  EXPECT_EQ(test.Send("GET", custom, "", Accept(kProtobuf))->status, 406);
  const auto jobs = test.Send("GET", custom, "", Accept(kProtobuf + partial));
  const Result<schema::ProtobufEnvelope> answer = schema::ReadProtobufEnvelope(jobs->body);
  ASSERT_TRUE(answer.has_value()) << jobs->body;
  EXPECT_EQ(answer->kind, "PartialObjectMetadataList");
}

TEST(ProtobufAnswers, WatchesSendTheEventsThatJsonHas) {
  TestServer test;
  Create(test, "old", "1");
  const std::string target =
      "/api/v1/configmaps?watch=true&allowWatchBookmarks=true&sendInitialEvents=true"
      "&resourceVersionMatch=NotOlderThan";
  const auto bytes = test.Send("GET", target, "", Accept(std::string(kProtobuf) + ";stream=watch"));
  const auto text = test.Send("GET", target);
  EXPECT_EQ(bytes->headers.Get("Content-Type"), "application/vnd.kubernetes.protobuf;stream=watch");
  Create(test, "new", "2");
  test.Send("DELETE", std::string(kConfigMaps) + "/old");
  std::vector<json::Value> expected;
  for (std::string_view line : SplitNonEmpty(text->body, '\n'))
    expected.push_back(*json::Parse(line));
  const std::vector<json::Value> have = Events(bytes->body);
  ASSERT_EQ(have.size(), expected.size());
  ASSERT_GE(have.size(), 4u);
  std::string types;
  for (size_t i = 0; i < have.size(); ++i) {
    types += have[i]["type"].Str() + " ";
    EXPECT_EQ(have[i]["type"], expected[i]["type"]);
    EXPECT_EQ(schema::EncodeProtobuf(have[i]["object"]).value_or("have"),
              schema::EncodeProtobuf(expected[i]["object"]).value_or("want"))
        << json::Write(have[i]) << "\n"
        << json::Write(expected[i]);
  }
  EXPECT_TRUE(types.ends_with("ADDED BOOKMARK ADDED DELETED ")) << types;
}

TEST(ProtobufAnswers, AWatchThatIsCutOffEndsWithAStatus) {
  TestServer test;
  const auto writer =
      test.Send("GET", "/api/v1/configmaps?watch=true&resourceVersion=1", "", Accept(kProtobuf));
  const size_t before = Events(writer->body).size();
  writer->buffered_bytes = kMaxWatchBacklogBytes + 1;
  Create(test, "a");
  EXPECT_TRUE(writer->cut);
  const std::vector<json::Value> events = Events(writer->body);
  ASSERT_GT(events.size(), before);
  EXPECT_EQ(events.back()["type"].Str(), "ERROR");
  EXPECT_EQ(events.back()["object"]["code"].AsInt(), 410);
}

TEST(ProtobufAnswers, ManyWatchersShareTheBytesOfAnEventInEachForm) {
  TestServer test;
  std::vector<TestServer::WriterPtr> protobuf, text;
  for (int i = 0; i < 5; ++i) {
    protobuf.push_back(test.Send("GET", "/api/v1/configmaps?watch=true", "", Accept(kProtobuf)));
    text.push_back(test.Send("GET", "/api/v1/configmaps?watch=true"));
  }
  Create(test, "a", "x");
  for (const auto& one : protobuf) EXPECT_EQ(one->body, protobuf[0]->body);
  for (const auto& one : text) EXPECT_EQ(one->body, text[0]->body);
  EXPECT_EQ(Events(protobuf[0]->body).back()["object"]["data"]["k"].Str(), "x");
  EXPECT_NE(text[0]->body.find("\"k\":\"x\""), std::string::npos);
}

}  // namespace
}  // namespace muster::apiserver
