// A byte that chooses a kind, an object, and perhaps a strategic merge patch on the next line: what
// the API server does with them. Conforming, and defaulting in the stored version, change nothing
// the second time, validation takes whatever they leave, a patch without directives does the same
// twice as once, and the protobuf form says what the JSON form says.

#include <algorithm>

#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "json/parse.h"
#include "schema/conform.h"
#include "schema/conversion.h"
#include "schema/defaulting.h"
#include "schema/protobuf_codec.h"
#include "schema/registry.h"
#include "schema/strategic_merge.h"
#include "schema/validation.h"

namespace {

using muster::Result;
using muster::json::Value;
using muster::schema::ApplyDefaults;
using muster::schema::Conform;
using muster::schema::Kind;

Result<Value> Patched(const Kind& kind, const Value& object, std::string_view text) {
  const Result<Value> patch = muster::json::Parse(text);
  if (!patch) return object;
  const Result<Value> merged = muster::schema::StrategicMerge(*kind.schema, object, *patch);
  if (!merged || text.find('$') != std::string_view::npos) return merged;
  const Result<Value> again = muster::schema::StrategicMerge(*kind.schema, *merged, *patch);
  CHECK(again.has_value() && *again == *merged);
  return merged;
}

// Whether all that `part` says is in `whole`. The protobuf form adds the empty values that Go
// always writes; an absent message and an empty one are the same to it.
bool Holds(const Value& whole, const Value& part) {
  if (part.IsArray()) {
    return whole.size() == part.size() &&
           std::equal(part.items().begin(), part.items().end(), whole.items().begin(),
                      [](const Value& a, const Value& b) { return Holds(b, a); });
  }
  if (!part.IsObject()) return whole == part;
  return std::ranges::all_of(part.members(), [&](const muster::json::Member& member) {
    return Holds(whole[member.first], member.second);
  });
}

// What happens to an object that conforms before it is stored.
void Store(const Kind& kind, const Value& object) {
  const Value whole = ApplyDefaults(kind, object);
  CHECK(ApplyDefaults(kind, whole) == whole);
  std::vector<std::string> unknown;
  const Result<Value> still = Conform(kind, whole, &unknown);
  CHECK(still.has_value() && *still == whole && unknown.empty());
  (void)muster::schema::Validate(kind, whole);
  CHECK(muster::schema::ValidateUpdate(kind, whole, whole).size() <= muster::schema::kMaxCauses);
  (void)muster::schema::ValidateUpdate(kind, object, whole);
  (void)muster::schema::ValidateStatusUpdate(kind, object, whole);
}

}  // namespace

FUZZ_TARGET(object, input) {
  muster::FuzzInput lines(input);
  const auto& kinds = muster::schema::Registry::BuiltIn().kinds();
  const Kind& kind = *kinds[lines.Byte() % kinds.size()];
  const Result<Value> sent = muster::json::Parse(lines.Line());
  if (!sent) return;
  const Result<Value> object = Patched(kind, *sent, lines.Rest());
  if (!object) return;
  std::vector<std::string> unknown;
  const Result<Value> conformed = Conform(kind, *object, &unknown);
  if (!conformed) return;
  unknown.clear();
  const Result<Value> twice = Conform(kind, *conformed, &unknown);
  CHECK(twice.has_value() && unknown.empty());
  // A quantity may be written otherwise once more (see quantity_fuzz.cc).
  if (*twice != *conformed) return;

  Store(muster::schema::StoredKind(kind), muster::schema::ToStored(kind, *conformed).object);
  const Result<std::string> bytes = muster::schema::EncodeMessage(*kind.schema, *conformed);
  if (!bytes) return;
  const Result<Value> decoded = muster::schema::DecodeMessage(*kind.schema, *bytes);
  CHECK(decoded.has_value());
  CHECK(Holds(*decoded, *conformed));
}
