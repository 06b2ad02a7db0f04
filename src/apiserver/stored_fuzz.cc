// An object on the first line: its stored form gives it back, as a tree and as the bytes that
// clients get; a JSONPath on the second line finds what it finds without harm.

#include "apiserver/stored_object.h"
#include "apiserver/table/json_path.h"
#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "json/parse.h"
#include "schema/registry.h"

FUZZ_TARGET(stored, input) {
  using muster::json::Value;
  muster::FuzzInput lines(input);
  const muster::Result<Value> sent = muster::json::Parse(lines.Line());
  if (!sent || !sent->IsObject() || !(*sent)["metadata"].IsObject()) return;
  for (const auto& [key, value] : (*sent)["metadata"].members())
    if (value.IsNull()) return;  // conforming has taken them out before
  if (const auto path = muster::apiserver::JsonPath::Parse(lines.Rest())) (void)path->Find(*sent);
  static const muster::schema::KindPtr kPods =
      muster::schema::Registry::BuiltIn().Find("", "v1", "pods");
  // The revision is the store's, kind and apiVersion are the kind's.
  const Value object = sent->RemovePath({"metadata", "resourceVersion"})
                           .RemovePath({"metadata", "selfLink"})
                           .RemovePath({"metadata", "managedFields"});
  const muster::apiserver::StoredForm stored = muster::apiserver::EncodeStored(*kPods, object);
  const Value wanted = object.Set("kind", "Pod").Set("apiVersion", "v1");
  const auto without_revision = [](const Value& value) {
    return value.RemovePath({"metadata", "resourceVersion"});
  };
  CHECK(without_revision(muster::apiserver::DecodeStored(*kPods, stored.bytes)) == wanted);
  CHECK(without_revision(muster::apiserver::StoredTree(*kPods, object, 7)) == wanted);
  const auto wire = muster::json::Parse(muster::apiserver::WireObject(*kPods, stored.bytes));
  CHECK(wire.has_value() && without_revision(*wire) == wanted);
}
