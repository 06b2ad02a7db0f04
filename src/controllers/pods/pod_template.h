// src/controllers/pods/pod_template.h
//
// Pods from templates.
//
// Thread: any (pure functions).

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "json/value.h"

namespace muster::controllers {

// The pod of `pod_template` (a PodTemplateSpec) that `owner` controls, in its namespace.
json::Value PodFromTemplate(const json::Value& owner, const json::Value& pod_template,
                            std::string name);

// Names of the kind that metadata.generateName gives ("web-" and five letters), one after another.
// They come from the seed alone: a pod whose creation was not answered gets its name again, so it
// is not made twice.
class PodNames {
 public:
  // `base` without the hyphen.
  PodNames(std::string_view base, uint64_t seed);
  // The next one that is not taken.
  std::string Next(const std::function<bool(const std::string&)>& is_taken);

 private:
  std::string prefix_;
  uint64_t seed_;
  uint64_t number_ = 0;
};

}  // namespace muster::controllers
