// Compares the committed .proto files with the table of upstream's facts, field by field: names,
// numbers, types, pointers, omitempty, merge strategies and list keys.

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "schema/registry.h"

namespace muster::schema {
namespace {

constexpr const char* kTable = "../shared/reference/k8s-fields.tsv";

struct Fact {
  std::string package, message, json, number, go_type, wire, label, pointer, omit, strategy,
      merge_key, markers;
};

// Packages that we describe, and the start of their OpenAPI names.
const std::map<std::string, std::string>& Prefixes() {
  static const std::map<std::string, std::string> prefixes = {
      {"core/v1", "io.k8s.api.core.v1."},
      {"discovery/v1", "io.k8s.api.discovery.v1."},
      {"coordination/v1", "io.k8s.api.coordination.v1."},
      {"scheduling/v1", "io.k8s.api.scheduling.v1."},
      {"authentication/v1", "io.k8s.api.authentication.v1."},
      {"authorization/v1", "io.k8s.api.authorization.v1."},
      {"autoscaling/v1", "io.k8s.api.autoscaling.v1."},
      {"autoscaling/v2", "io.k8s.api.autoscaling.v2."},
      {"admissionregistration/v1", "io.k8s.api.admissionregistration.v1."},
      {"apps/v1", "io.k8s.api.apps.v1."},
      {"batch/v1", "io.k8s.api.batch.v1."},
      {"networking/v1", "io.k8s.api.networking.v1."},
      {"policy/v1", "io.k8s.api.policy.v1."},
      {"rbac/v1", "io.k8s.api.rbac.v1."},
      {"storage/v1", "io.k8s.api.storage.v1."},
      {"scheduling/v1alpha3", "io.k8s.api.scheduling.v1alpha3."},
      {"pkg/apis/meta/v1", "io.k8s.apimachinery.pkg.apis.meta.v1."},
      {"pkg/apis/apiextensions/v1", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."},
      {"pkg/apis/apiregistration/v1", "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1."}};
  return prefixes;
}

std::vector<Fact> ReadTable(std::istream& in) {
  std::vector<Fact> facts;
  std::string line;
  std::getline(in, line);  // titles
  while (std::getline(in, line)) {
    const std::vector<std::string_view> cells = Split(line, '\t');
    if (cells.size() != 12) continue;
    const auto cell = [&](size_t i) { return std::string(cells[i]); };
    facts.push_back({cell(0), cell(1), cell(2), cell(3), cell(4), cell(5), cell(6), cell(7),
                     cell(8), cell(9), cell(10), cell(11)});
  }
  return facts;
}

// The values of a marker such as +listMapKey=name.
std::vector<std::string> Markers(const Fact& fact, const std::string& name) {
  std::vector<std::string> values;
  for (const std::string_view marker : SplitNonEmpty(fact.markers, ' '))
    if (marker.starts_with("+" + name + "=")) values.emplace_back(marker.substr(name.size() + 2));
  return values;
}

class SchemaFactsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ifstream in(kTable);
    if (!in) GTEST_SKIP() << "the table of upstream's facts is not present: " << kTable;
    facts_ = ReadTable(in);
    for (const Fact& fact : facts_) messages_.insert(fact.message);
  }

  const Schema* Find(const Fact& fact) const {
    const auto prefix = Prefixes().find(fact.package);
    return prefix == Prefixes().end()
               ? nullptr
               : Registry::BuiltIn().FindSchema(prefix->second + fact.message);
  }

  void ExpectType(const Fact& fact, const Field& field) const {
    std::string type = fact.go_type;
    if (type.starts_with("*")) type.erase(0, 1);
    if (type == "ResourceList") type = "map[ResourceName]resource.Quantity";
    const Schema* schema = field.schema;
    if (type.starts_with("[]") && type != "[]byte") {
      ASSERT_EQ(schema->type, Type::kArray);
      schema = schema->items;
      type.erase(0, 2);
    } else if (type.starts_with("map[")) {
      ASSERT_EQ(schema->type, Type::kMap);
      schema = schema->items;
      type.erase(0, type.find(']') + 1);
    }
    static const std::map<std::string, std::pair<Type, std::string>> scalars = {
        {"string", {Type::kString, ""}},      {"bool", {Type::kBoolean, ""}},
        {"int32", {Type::kInteger, "int32"}}, {"int64", {Type::kInteger, "int64"}},
        {"[]byte", {Type::kBytes, "byte"}},   {"float64", {Type::kNumber, "double"}}};
    if (const auto scalar = scalars.find(type); scalar != scalars.end()) {
      EXPECT_EQ(schema->type, scalar->second.first);
      EXPECT_EQ(schema->format, scalar->second.second);
      return;
    }
    const std::string bare = type.substr(type.rfind('.') + 1);
    static const std::set<std::string> by_hand = {
        "Quantity", "IntOrString", "Time", "MicroTime", "RawExtension", "FieldsV1",
        "JSONSchemaProps", "CustomResourceSubresourceStatus", "ExtraValue", "AttestationValue",
        // Without a field, so the table has none of them.
        "WorkloadPodGroupSingleDisruptionMode", "WorkloadPodGroupAllDisruptionMode",
        "WorkloadPodGroupBasicSchedulingPolicy"};
    if (messages_.contains(bare) || by_hand.contains(bare)) {
      EXPECT_EQ(schema->name.substr(schema->name.rfind('.') + 1), bare);
    } else {
      EXPECT_EQ(schema->type, Type::kString) << type;
    }
  }

  void ExpectMergeRules(const Fact& fact, const Field& field) const {
    EXPECT_EQ(field.patch_merge_key, fact.merge_key);
    std::set<std::string_view> strategies;
    for (const std::string_view strategy : SplitNonEmpty(fact.strategy, ','))
      strategies.insert(strategy);
    EXPECT_EQ(field.patch_merge, strategies.contains("merge"));
    EXPECT_EQ(field.patch_retain_keys, strategies.contains("retainKeys"));
    EXPECT_EQ(field.list_map_keys, Markers(fact, "listMapKey"));
    if (field.schema->type != Type::kArray) return;
    const std::vector<std::string> list_type = Markers(fact, "listType");
    const ListType expected = list_type.empty() || list_type[0] == "atomic" ? ListType::kAtomic
                              : list_type[0] == "set"                       ? ListType::kSet
                                                                            : ListType::kMap;
    EXPECT_EQ(field.list_type, expected);
  }

  std::vector<Fact> facts_;
  std::set<std::string> messages_;
};

TEST_F(SchemaFactsTest, EveryFieldIsAsUpstreamHasIt) {
  size_t compared = 0;
  for (const Fact& fact : facts_) {
    const Schema* schema = Find(fact);
    if (schema == nullptr || fact.json == "(inline)") continue;
    SCOPED_TRACE(schema->name + "." + fact.json);
    const Field* field = schema->Find(fact.json);
    ASSERT_NE(field, nullptr);
    EXPECT_EQ(std::to_string(field->number), fact.number);
    // Bytes are nil or not in Go without being a pointer.
    EXPECT_EQ(field->pointer, fact.pointer == "ptr" || fact.go_type == "[]byte");
    EXPECT_EQ(field->omit_empty, fact.omit == "omitempty");
    ExpectType(fact, *field);
    ExpectMergeRules(fact, *field);
    ++compared;
  }
  EXPECT_GT(compared, 900u);
}

TEST_F(SchemaFactsTest, EmbeddedStructsTravelUnderUpstreamsNumbers) {
  size_t compared = 0;
  for (const Fact& fact : facts_) {
    const Schema* schema = Find(fact);
    if (schema == nullptr || fact.json != "(inline)") continue;
    bool found = false;
    for (const Field& field : schema->fields)
      found |= std::to_string(field.inlined_in) == fact.number;
    EXPECT_TRUE(found) << schema->name << " " << fact.go_type;
    ++compared;
  }
  EXPECT_GE(compared, 9u);
}

TEST_F(SchemaFactsTest, NothingIsInvented) {
  std::map<const Schema*, std::set<std::string>> known;
  for (const Fact& fact : facts_)
    if (const Schema* schema = Find(fact)) known[schema].insert(fact.json);
  for (const auto& [schema, names] : known) {
    for (const Field& field : schema->fields) {
      const bool from_envelope = field.number == 0;
      EXPECT_TRUE(from_envelope || field.inlined_in != 0 || names.contains(field.name))
          << schema->name << "." << field.name;
    }
  }
}

}  // namespace
}  // namespace muster::schema
