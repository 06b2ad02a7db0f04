// Whatever JSON the scanner takes must survive a round trip; nothing may crash it.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "json/parse.h"
#include "json/write.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using muster::json::Value;
  muster::json::ParseNotes notes;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const muster::Result<Value> value = muster::json::Parse(text, &notes);
  if (!value) return 0;
  const muster::Result<Value> again = muster::json::Parse(muster::json::Write(*value));
  CHECK(again.has_value() && *again == *value);
  CHECK(muster::json::Parse(muster::json::WritePretty(*value)).has_value());
  return 0;
}
