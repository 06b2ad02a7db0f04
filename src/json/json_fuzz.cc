// JSON: what we take survives writing and reading, compact and pretty, and the writer's text is its
// own fixpoint. JSON is YAML: the other reader understands the same.

#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "json/parse.h"
#include "json/write.h"

FUZZ_TARGET(json, input) {
  using muster::json::Value;
  muster::json::ParseNotes notes;
  const muster::Result<Value> value = muster::json::Parse(input, &notes);
  if (!value) return;
  const std::string text = muster::json::Write(*value);
  const muster::Result<Value> again = muster::json::Parse(text);
  CHECK(again.has_value() && *again == *value);
  CHECK(muster::json::Write(*again) == text);
  const muster::Result<Value> pretty = muster::json::Parse(muster::json::WritePretty(*value));
  CHECK(pretty.has_value() && *pretty == *value);
  if (value->IsNull()) return;  // an empty document is none
  const auto yaml = muster::json::ParseYaml(muster::json::WriteYaml(*value));
  CHECK(yaml.has_value() && yaml->size() == 1 && yaml->front() == *value);
}
