// tools/schema/compatibility.cc
//
// Prints docs/compatibility.md; tools/schema/compatibility writes it.

#include <fmt/core.h>

#include "schema/compatibility.h"

int main() {
  fmt::print("{}", muster::schema::CompatibilityMarkdown());
  return 0;
}
