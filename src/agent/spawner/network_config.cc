#include "agent/spawner/network_config.h"

namespace muster::agent {

json::Value ToJson(const NodeNetworkConfig& config) {
  return json::Obj({{"bridge", config.bridge},
                    {"podRange", config.pod_range.ToString()},
                    {"nodeRange", config.node_range.ToString()},
                    {"serviceRange", config.service_range.ToString()},
                    {"stateFile", config.state_file}});
}

NodeNetworkConfig NetworkConfigFromJson(const json::Value& value) {
  NodeNetworkConfig config;
  config.bridge = value["bridge"].Str(config.bridge);
  config.pod_range = Ipv4Prefix::Parse(value["podRange"].AsString()).value_or(config.pod_range);
  config.node_range = Ipv4Prefix::Parse(value["nodeRange"].AsString()).value_or(config.node_range);
  config.service_range =
      Ipv4Prefix::Parse(value["serviceRange"].AsString()).value_or(config.service_range);
  config.state_file = value["stateFile"].Str();
  return config;
}

}  // namespace muster::agent
