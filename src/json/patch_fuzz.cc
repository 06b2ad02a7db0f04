// A document and a patch, one per line: RFC 6902 and 7386 never crash, and a created merge patch
// does what it says.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "json/parse.h"
#include "json/patch.h"
#include "json/write.h"

namespace {

bool HasNull(const muster::json::Value& value) {
  if (value.IsNull()) return true;
  for (const auto& [key, member] : value.members()) {
    if (HasNull(member)) return true;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using muster::json::Value;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t newline = text.find('\n');
  if (newline == std::string_view::npos) return 0;
  const muster::Result<Value> document = muster::json::Parse(text.substr(0, newline));
  const muster::Result<Value> patch = muster::json::Parse(text.substr(newline + 1));
  if (!document || !patch) return 0;
  (void)muster::json::ApplyJsonPatch(*document, *patch);
  (void)muster::json::ApplyMergePatch(*document, *patch);
  const Value difference = muster::json::CreateMergePatch(*document, *patch);
  if (!HasNull(*patch)) CHECK(muster::json::ApplyMergePatch(*document, difference) == *patch);
  return 0;
}
