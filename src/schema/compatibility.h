// src/schema/compatibility.h
//
// docs/compatibility.md: the fields that have an effect upstream and not yet here, from
// Field::support. The program tools/schema/compatibility writes the file; a test says when it is
// not current.
//
// Thread: any (pure).

#pragma once

#include <string>

namespace muster::schema {

std::string CompatibilityMarkdown();

}  // namespace muster::schema
