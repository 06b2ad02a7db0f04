// A document and a patch, one per line. RFC 6902: what `add` put somewhere `test` finds there, and
// `remove` takes it away again. RFC 7386: a patch does the same twice as once, and a made patch
// does what it was made for.

#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "json/parse.h"
#include "json/patch.h"
#include "json/write.h"

namespace {

using muster::Result;
using muster::json::ApplyJsonPatch;
using muster::json::ApplyMergePatch;
using muster::json::CreateMergePatch;
using muster::json::List;
using muster::json::Obj;
using muster::json::Value;

bool HasNull(const Value& value) {
  if (value.IsNull()) return true;
  for (const auto& [key, member] : value.members()) {
    if (HasNull(member)) return true;
  }
  return false;
}

void CheckAdd(const Value& document, const Value& operation) {
  const Value& path = operation["path"];
  if (!path.IsString() || !operation.Has("value")) return;
  const Value& value = operation["value"];
  const Value add = Obj({{"op", "add"}, {"path", path}, {"value", value}});
  const Result<Value> added = ApplyJsonPatch(document, List({add}));
  if (!added) return;
  const std::string_view text = path.AsString();
  if (text.ends_with("/-")) return;  // behind the end: nothing stands there
  const Value* found = muster::json::FindPointer(*added, text);
  CHECK(found != nullptr && *found == value);
  const Value test = Obj({{"op", "test"}, {"path", path}, {"value", value}});
  CHECK(ApplyJsonPatch(*added, List({test})).has_value());
  // The whole document, or a member that was there: replaced, and no `remove` brings it back.
  if (text.empty()) return;
  const Value* parent = muster::json::FindPointer(document, text.substr(0, text.rfind('/')));
  CHECK(parent != nullptr);
  if (parent->IsObject() && muster::json::FindPointer(document, text) != nullptr) return;
  const Result<Value> removed =
      ApplyJsonPatch(*added, List({Obj({{"op", "remove"}, {"path", path}})}));
  CHECK(removed.has_value() && *removed == document);
}

void CheckMerge(const Value& document, const Value& patch) {
  const Value merged = ApplyMergePatch(document, patch);
  CHECK(ApplyMergePatch(merged, patch) == merged);
  if (document.IsObject()) CHECK(CreateMergePatch(document, document) == Obj());
  const Value difference = CreateMergePatch(document, patch);
  if (!HasNull(patch)) CHECK(ApplyMergePatch(document, difference) == patch);
}

}  // namespace

FUZZ_TARGET(patch, input) {
  muster::FuzzInput lines(input);
  const Result<Value> document = muster::json::Parse(lines.Line());
  const Result<Value> patch = muster::json::Parse(lines.Rest());
  if (!document || !patch) return;
  const std::string before = muster::json::Write(*document);
  if (const Result<Value> patched = ApplyJsonPatch(*document, *patch)) {
    const Result<Value> again = muster::json::Parse(muster::json::Write(*patched));
    CHECK(again.has_value() && *again == *patched);
  }
  for (const Value& operation : patch->items()) CheckAdd(*document, operation);
  CheckMerge(*document, *patch);
  CHECK(muster::json::Write(*document) == before);
}
