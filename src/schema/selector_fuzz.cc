// Label and field selectors: no text crashes them; a label selector means the same after it was
// written, and what its requirements ask for one by one is what they ask for together.

#include <algorithm>

#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "schema/field_selector.h"
#include "schema/label_selector.h"

namespace {

using muster::json::Value;
using muster::schema::LabelRequirement;
using muster::schema::LabelSelector;

// Labels that touch the selector: the first value of every other requirement.
Value SomeLabels(const LabelSelector& selector, size_t phase) {
  Value labels = muster::json::Obj();
  const auto& requirements = selector.requirements();
  for (size_t i = phase; i < requirements.size(); i += 2) {
    const auto& values = requirements[i].values;
    labels = labels.Set(requirements[i].key, values.empty() ? std::string("x") : values.front());
  }
  return labels;
}

}  // namespace

FUZZ_TARGET(selector, input) {
  muster::FuzzInput lines(input);
  const std::string_view text = lines.Line();
  (void)muster::schema::FieldSelector::Parse(text);
  const auto selector = LabelSelector::Parse(text);
  if (!selector) return;
  const auto again = LabelSelector::Parse(selector->ToString());
  CHECK(again.has_value() && again->ToString() == selector->ToString());
  for (const size_t phase : {0, 1}) {
    const Value labels = SomeLabels(*selector, phase);
    const bool one_by_one =
        std::ranges::all_of(selector->requirements(), [&](const LabelRequirement& requirement) {
          return LabelSelector({requirement}).Matches(labels);
        });
    CHECK(selector->Matches(labels) == one_by_one);
    CHECK(again->Matches(labels) == one_by_one);
  }
}
