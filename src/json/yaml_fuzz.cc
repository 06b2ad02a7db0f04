// Whatever YAML we take must read back equal after we wrote it; nothing may crash or hang the
// reader.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "json/parse.h"
#include "json/write.h"

namespace {
constexpr size_t kMaxWrittenBytes = 1 << 20;  // aliases may stand for far more than the input
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using muster::json::Value;
  muster::json::ParseNotes notes;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto documents = muster::json::ParseYaml(text, &notes);
  if (!documents) return 0;
  for (const Value& document : *documents) {
    if (muster::json::Write(document).size() > kMaxWrittenBytes) continue;
    const auto again = muster::json::ParseYaml(muster::json::WriteYaml(document));
    CHECK(again.has_value() && again->size() == 1 && again->front() == document);
  }
  return 0;
}
