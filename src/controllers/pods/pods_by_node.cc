#include "controllers/pods/pods_by_node.h"

namespace muster::controllers {
namespace {

constexpr char kNodeIndex[] = "pod-node";

}  // namespace

void IndexByNode(client::Informer& pods) {
  pods.AddIndex(kNodeIndex, [](const json::Value& pod) {
    const std::string node = pod["spec"]["nodeName"].Str();
    return node.empty() ? std::vector<std::string>() : std::vector<std::string>{node};
  });
}

std::vector<client::ObjectKey> PodsOn(const client::Informer& pods, const std::string& node) {
  return pods.Lookup(kNodeIndex, node);
}

std::vector<client::ObjectKey> NodeOf(const json::Value& pod) {
  const std::string node = pod["spec"]["nodeName"].Str();
  return node.empty() ? std::vector<client::ObjectKey>()
                      : std::vector<client::ObjectKey>{{"", node}};
}

}  // namespace muster::controllers
