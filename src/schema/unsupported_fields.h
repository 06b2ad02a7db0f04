// src/schema/unsupported_fields.h
//
// UnsupportedFields: the set fields of an object that have an effect upstream and none here yet
// (Field::support).
//
// Thread: any (pure function).

#pragma once

#include <string>
#include <vector>

#include "json/value.h"
#include "schema/schema.h"

namespace muster::schema {

struct UnsupportedField {
  std::string path;        // "spec.containers[0].securityContext.runAsUser"
  bool restricts = false;  // the pod must fail rather than run without it
  bool loosens = false;    // it would lift a restriction, which stays
  // Of a field some of whose values are acted on: the others, e.g. names of capabilities.
  std::vector<std::string> values;

  // The text of the Warning header: "spec.x is not acted on yet", and what happens instead.
  std::string ToString() const;
};

// In the order of the schema; at most kMaxReportedFields (schema/conform.h).
std::vector<UnsupportedField> FindUnsupported(const Schema& schema, const json::Value& value);

}  // namespace muster::schema
