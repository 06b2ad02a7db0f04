// Label and field selectors: no text crashes them, and a label selector means the same after it was
// written.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "schema/field_selector.h"
#include "schema/label_selector.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)muster::schema::FieldSelector::Parse(text);
  const auto selector = muster::schema::LabelSelector::Parse(text);
  if (!selector) return 0;
  const auto again = muster::schema::LabelSelector::Parse(selector->ToString());
  CHECK(again.has_value() && again->ToString() == selector->ToString());
  return 0;
}
