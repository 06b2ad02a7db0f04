// src/schema/kind.h
//
// Kind: what the API server needs to know of one served kind. Built-in kinds come from
// schema/*.proto through Registry::BuiltIn(); custom kinds are made from CustomResourceDefinition
// objects (schema/crd.h).

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "schema/schema.h"

namespace muster::schema {

struct PrinterColumn {
  std::string name;  // "Age"
  std::string type;  // string, integer, number, boolean, date
  std::string format;
  std::string description;
  std::string json_path;  // ".status.phase"; "" when the API server computes the cell (pods: READY)
  int priority = 0;       // > 0: only with -o wide
};

struct ScaleSubresource {
  std::string spec_replicas_path, status_replicas_path, label_selector_path;
};

struct Conversion;  // schema/conversion.h

struct Kind {
  std::string group;      // "" for core
  std::string version;    // "v1"
  std::string kind;       // "Pod"
  std::string list_kind;  // "PodList"
  std::string plural;     // "pods"
  std::string singular;   // "pod"
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool namespaced = true;
  bool status_subresource = false;
  std::unique_ptr<ScaleSubresource> scale;
  bool create_only = false;  // a question that POST answers: nothing is stored
  bool computed = false;     // made when it is read (metrics.k8s.io): get and list only
  bool custom = false;       // from a CRD: no protobuf, no strategic merge
  bool storage = true;       // the version that is stored
  std::shared_ptr<const Conversion> conversion;  // null: shares the stored form as it is
  SchemaPtr schema;                              // of the whole object
  std::vector<PrinterColumn> columns;
  std::vector<std::string>
      selectable_fields;  // "spec.nodeName", besides metadata.name and metadata.namespace

  std::string GroupVersion() const { return group.empty() ? version : group + "/" + version; }
  // "pods" or "pytorchjobs.kubeflow.org": how error messages name the resource.
  std::string QualifiedResource() const { return group.empty() ? plural : plural + "." + group; }
};
using KindPtr = std::shared_ptr<const Kind>;

}  // namespace muster::schema
