// tools/schema/compatibility.cc
//
// Prints docs/compatibility.md; tools/schema/compatibility writes it.

#include <iostream>

#include "schema/compatibility.h"

int main() {
  std::cout << muster::schema::CompatibilityMarkdown();
  return 0;
}
