// YAML: whatever we take reads back equal after we wrote it, alone and as one of several documents;
// nothing crashes or hangs the reader. (Texts may differ once: -0.0 is written -0, an integer.)

#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "json/parse.h"
#include "json/write.h"

namespace {
constexpr size_t kMaxWrittenBytes = 1 << 20;  // aliases may stand for far more than the input
}

FUZZ_TARGET(yaml, input) {
  using muster::json::Value;
  muster::json::ParseNotes notes;
  const auto documents = muster::json::ParseYaml(input, &notes);
  if (!documents) return;
  std::string stream;
  for (const Value& document : *documents) {
    if (muster::json::Write(document).size() > kMaxWrittenBytes) return;
    const std::string text = muster::json::WriteYaml(document);
    const auto again = muster::json::ParseYaml(text);
    CHECK(again.has_value() && again->size() == 1 && again->front() == document);
    const std::string settled = muster::json::WriteYaml(again->front());
    CHECK(muster::json::WriteYaml(muster::json::ParseYaml(settled)->front()) == settled);
    stream += "---\n" + text;
  }
  const auto all = muster::json::ParseYaml(stream);
  CHECK(all.has_value() && *all == *documents);
}
