// src/serving/children.h
//
// The objects that an InferenceService, or an InferenceGraph, is made of.
//
// Thread: any (pure).

#pragma once

#include <string>
#include <string_view>

#include "json/value.h"
#include "serving/inference_service.h"
#include "serving/serving_pass.h"

namespace muster::serving {

// {apiVersion, kind, metadata} with the owner's namespace, its label and reference.
json::Value MakeChild(std::string_view api_version, std::string_view kind, std::string_view name,
                      const json::Value& owner);

// What a Deployment gets besides its number of replicas.
struct RevisionSpec {
  json::Value pod_template;  // without the label `app`
  json::Value strategy;      // null: the default
  std::string revision, hash;
};
json::Value MakeDeployment(const InferenceService& service, std::string_view name,
                           const RevisionSpec& revision, int64_t replicas);
// JSON patch that makes the Deployment one of this revision.
json::Value DeploymentPatch(std::string_view name, const RevisionSpec& revision);

json::Value MakePodService(const InferenceService& service, std::string_view name, int port);
json::Value AutoscalerSpec(const InferenceService& service);

}  // namespace muster::serving
