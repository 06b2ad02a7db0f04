// src/schema/registry.h
//
// Registry: the kinds and schemas of the compiled API (schema/**/*.proto). Custom kinds are not
// here: they come and go with their CustomResourceDefinitions (schema/crd.h).
//
//   KindPtr pods = Registry::BuiltIn().Find("", "v1", "pods");
//   const Schema* schema = Registry::BuiltIn().FindSchema("io.k8s.api.core.v1.PodTemplateSpec");
//
// Embedded Go structs (a volume's source) are flattened: their fields stand in the parent's Schema
// with Field::inlined_in telling the protobuf codec where they travel.
//
// Life cycle: built once, on the first call of BuiltIn() (under 10 ms); lives until the process
// ends. Thread:     any, after the first call has returned; immutable. Invariants: a Schema's
// fields are in the order of their protobuf numbers, apiVersion and kind first.

#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "schema/kind.h"
#include "schema/schema.h"

namespace muster::schema {

class Registry {
 public:
  static const Registry& BuiltIn();

  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Kinds that are served without a CustomResourceDefinition; null if there is none.
  KindPtr Find(std::string_view group, std::string_view version, std::string_view plural) const;
  KindPtr FindKind(std::string_view group, std::string_view version, std::string_view kind) const;
  // In the order of the .proto files.
  const std::vector<KindPtr>& kinds() const { return kinds_; }
  // Our own kinds that are described here and served through the CRDs in schema/own_crds.h.
  const std::vector<KindPtr>& own_custom_kinds() const { return own_custom_kinds_; }

  // By OpenAPI name, "io.k8s.api.core.v1.PodSpec"; also messages that are no kinds (Status,
  // DeleteOptions, Scale). null if there is none.
  const Schema* FindSchema(std::string_view name) const;
  // The message of an apiVersion and kind, whether served or not: "v1" + "DeleteOptions" (metadata
  // messages belong to every group), "autoscaling/v1" + "Scale". null if there is none.
  const Schema* FindMessage(std::string_view api_version, std::string_view kind) const;

 private:
  friend class RegistryBuilder;
  Registry();

  std::vector<KindPtr> kinds_;
  std::vector<KindPtr> own_custom_kinds_;
  std::deque<Schema> schemas_;  // stable addresses
  std::unordered_map<std::string, const Schema*> by_name_;
  std::unordered_map<std::string, const Schema*> by_api_version_and_kind_;
};

}  // namespace muster::schema
