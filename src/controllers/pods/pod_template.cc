#include "controllers/pods/pod_template.h"

#include <utility>

#include <fmt/core.h>

#include "base/rng.h"
#include "base/strings.h"
#include "controllers/pods/ownership.h"

namespace muster::controllers {
namespace {

constexpr int kSuffixLength = 5;
// A generated name has at most 63 letters, whatever its base.
constexpr size_t kMaxBaseLength = 63 - kSuffixLength;

}  // namespace

json::Value PodFromTemplate(const json::Value& owner, const json::Value& pod_template,
                            std::string name) {
  json::Value metadata = json::Obj({{"name", std::move(name)},
                                    {"namespace", owner["metadata"]["namespace"]},
                                    {"ownerReferences", ControlledByOnly(owner)}});
  for (const char* member : {"labels", "annotations", "finalizers"}) {
    const json::Value& value = pod_template["metadata"][member];
    if (!value.empty()) metadata = std::move(metadata).Set(member, value);
  }
  return json::Obj({{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", std::move(metadata)},
                    {"spec", pod_template["spec"]}});
}

PodNames::PodNames(std::string_view base, uint64_t seed)
    : prefix_(fmt::format("{}-", base).substr(0, kMaxBaseLength)), seed_(seed) {}

std::string PodNames::Next(const std::function<bool(const std::string&)>& is_taken) {
  while (true) {
    Rng rng(Hash64(fmt::format("{}", number_++), seed_));
    std::string name = prefix_ + rng.NameSuffix(kSuffixLength);
    if (!is_taken(name)) return name;
  }
}

}  // namespace muster::controllers
