#include "schema/type_names.h"

namespace muster::schema {

std::string_view JsonKindName(json::Kind kind) {
  switch (kind) {
    case json::Kind::kNull:
      return "null";
    case json::Kind::kBool:
      return "boolean";
    case json::Kind::kNumber:
      return "number";
    case json::Kind::kString:
      return "string";
    case json::Kind::kArray:
      return "array";
    case json::Kind::kObject:
      return "object";
  }
  return "";
}

std::string_view OpenApiTypeName(Type type) {
  switch (type) {
    case Type::kObject:
    case Type::kMap:
      return "object";
    case Type::kArray:
      return "array";
    case Type::kInteger:
      return "integer";
    case Type::kNumber:
      return "number";
    case Type::kBoolean:
      return "boolean";
    default:
      return "string";
  }
}

}  // namespace muster::schema
