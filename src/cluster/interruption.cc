#include "cluster/interruption.h"

namespace muster::cluster {

std::optional<Time> InterruptionDeadline(const json::Value& node) {
  return ParseTime(node["metadata"]["annotations"][kInterruptionDeadline].AsString());
}

}  // namespace muster::cluster
