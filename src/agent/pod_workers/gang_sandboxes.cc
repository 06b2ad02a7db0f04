#include "agent/pod_workers/gang_sandboxes.h"

#include "cluster/pod_info.h"

namespace muster::agent {

std::string SharedGangOf(const json::Value& pod) {
  if (!cluster::SharesGangSandbox(pod["metadata"])) return "";
  const std::string group = cluster::GroupOf(pod["metadata"]);
  if (group.empty() || pod["spec"]["hostNetwork"].AsBool()) return "";
  return pod["metadata"]["namespace"].Str() + "/" + group;
}

Result<Ipv4> GangSandboxes::Join(const std::string& gang, const std::string& pod_uid) {
  const auto known = gangs_.find(gang);
  if (known == gangs_.end()) {
    ASSIGN_OR_RETURN(const Ipv4 address, addresses_.Allocate());
    gangs_[gang] = {address, {pod_uid}};
    return address;
  }
  known->second.members.insert(pod_uid);
  return known->second.address;
}

void GangSandboxes::Adopt(const std::string& gang, const std::string& pod_uid, Ipv4 address) {
  (void)addresses_.Take(address);  // the second member finds it taken
  Gang& entry = gangs_[gang];
  entry.address = address;
  entry.members.insert(pod_uid);
}

void GangSandboxes::Leave(const std::string& gang, const std::string& pod_uid) {
  const auto known = gangs_.find(gang);
  if (known == gangs_.end() || known->second.members.erase(pod_uid) == 0) return;
  if (!known->second.members.empty()) return;
  addresses_.Release(known->second.address);
  gangs_.erase(known);
}

bool GangSandboxes::IsMember(const std::string& gang, const std::string& pod_uid) const {
  const auto known = gangs_.find(gang);
  return known != gangs_.end() && known->second.members.contains(pod_uid);
}

std::vector<std::string> GangSandboxes::OtherMembers(const std::string& gang,
                                                     const std::string& pod_uid) const {
  std::vector<std::string> out;
  const auto known = gangs_.find(gang);
  if (known == gangs_.end()) return out;
  for (const std::string& member : known->second.members) {
    if (member != pod_uid) out.push_back(member);
  }
  return out;
}

}  // namespace muster::agent
