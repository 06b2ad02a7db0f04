#include "cluster/taints.h"

#include <algorithm>

namespace muster::cluster {

namespace {

TaintEffect ToEffect(std::string_view text) {
  if (text == "NoExecute") return TaintEffect::kNoExecute;
  if (text == "PreferNoSchedule") return TaintEffect::kPreferNoSchedule;
  return TaintEffect::kNoSchedule;
}

}  // namespace

Taint ToTaint(const json::Value& taint) {
  return {taint["key"].Str(), taint["value"].Str(), ToEffect(taint["effect"].AsString())};
}

Toleration ToToleration(const json::Value& toleration) {
  const std::string_view effect = toleration["effect"].AsString();
  return {toleration["key"].Str(), toleration["value"].Str(),
          toleration["operator"].AsString() == "Exists", effect.empty(), ToEffect(effect)};
}

std::vector<Taint> ToTaints(const json::Value& taints) {
  std::vector<Taint> out;
  for (const json::Value& taint : taints.items()) out.push_back(ToTaint(taint));
  return out;
}

std::vector<Toleration> ToTolerations(const json::Value& tolerations) {
  std::vector<Toleration> out;
  for (const json::Value& toleration : tolerations.items()) out.push_back(ToToleration(toleration));
  return out;
}

bool Tolerates(const Toleration& toleration, const Taint& taint) {
  if (!toleration.any_effect && toleration.effect != taint.effect) return false;
  if (toleration.key.empty()) return toleration.exists;
  if (toleration.key != taint.key) return false;
  return toleration.exists || toleration.value == taint.value;
}

bool Tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::any_of(tolerations.begin(), tolerations.end(),
                     [&](const Toleration& toleration) { return Tolerates(toleration, taint); });
}

const Taint* FirstUntolerated(const std::vector<Taint>& taints,
                              const std::vector<Toleration>& tolerations) {
  for (const Taint& taint : taints) {
    if (taint.effect != TaintEffect::kPreferNoSchedule && !Tolerates(tolerations, taint))
      return &taint;
  }
  return nullptr;
}

int64_t CountUnwelcome(const std::vector<Taint>& taints,
                       const std::vector<Toleration>& tolerations) {
  return std::count_if(taints.begin(), taints.end(), [&](const Taint& taint) {
    return taint.effect == TaintEffect::kPreferNoSchedule && !Tolerates(tolerations, taint);
  });
}

}  // namespace muster::cluster
