// Quantities: the canonical text means the same amount, and is its own canonical text.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "schema/quantity_syntax.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto amount =
      muster::schema::ParseAmount(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!amount) return 0;
  const auto again = muster::schema::ParseAmount(amount->Canonical());
  CHECK(again.has_value() && *again == *amount);
  CHECK(again->Canonical() == amount->Canonical());
  return 0;
}
