// src/cluster/pod_info.h
//
// What scheduling needs to know of a pod, a node and a gang, read once per change from their JSON
// objects.
//
// Thread: any (values and pure functions).

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "cluster/devices.h"
#include "cluster/images.h"
#include "cluster/node_affinity.h"
#include "cluster/pod_relations.h"
#include "cluster/resources.h"
#include "cluster/taints.h"
#include "cluster/volumes.h"
#include "json/projection.h"
#include "json/value.h"
#include "schema/label_selector.h"

namespace muster::cluster {

// Gang membership: Volcano's annotation, or the label of scheduler-plugins.
inline constexpr std::string_view kGroupNameAnnotation = "scheduling.k8s.io/group-name";
inline constexpr std::string_view kPodGroupLabel = "scheduling.x-k8s.io/pod-group";
// Which task of its gang a pod is (Volcano).
inline constexpr std::string_view kTaskSpecAnnotation = "volcano.sh/task-spec";

enum class PodPhase : uint8_t { kPending, kRunning, kSucceeded, kFailed, kUnknown };

// How nodes with nothing else between them are ordered, by the pod's schedulerName.
enum class Profile : uint8_t {
  kPack,    // the fullest first, so that whole nodes stay free for large jobs
  kSpread,  // the emptiest first, and away from pods of the same kind: for serving
};
inline constexpr std::string_view kSpreadScheduler = "muster-spread";

// What decides where a pod may run and where it would rather; pods with equal constraints and
// requests are of one shape.
struct PodConstraints {
  ResourceList requests;  // PodRequests()
  NodeAffinity affinity;
  std::vector<Toleration> tolerations;
  PodRelations relations;
  std::vector<ImageHash> images;
  std::vector<ClaimUse> claims;
  Profile profile = Profile::kPack;
  bool operator==(const PodConstraints&) const = default;
};

// What is a pod's own.
struct PodFacts {
  std::string ns, name, uid;
  std::string scheduler_name;
  std::string node_name;  // "" while not bound
  std::string group;      // name of its PodGroup in `ns`; "" for a pod on its own
  std::string task;       // of that gang; "" if it names none
  std::string holder;     // who holds its resources: "pytorchjob default/a", "pod default/x"
  PodPhase phase = PodPhase::kPending;
  bool deleting = false;  // has a deletionTimestamp; its resources stay used until it is gone
  bool gated = false;     // spec.schedulingGates is not empty
  int64_t priority = 0;
  bool may_preempt = true;     // spec.preemptionPolicy is not Never
  std::string nominated_node;  // status.nominatedNodeName: room is being made for it there
  Time created{};
  Time started{};  // status.startTime
  AssignedDevices assigned_devices;

  bool IsFinished() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  bool operator==(const PodFacts&) const = default;
};

// With what it often has in common with others.
struct PodInfo : PodFacts {
  PodLabels labels;
  PodConstraints constraints;
  bool operator==(const PodInfo&) const = default;
};

// The name of the pod's gang, "" for a pod on its own.
std::string GroupOf(const json::Value& metadata);
PodInfo ToPodInfo(const json::Value& pod);
// What ToPodInfo and ShareOutDevices read, besides identity fields; likewise below.
const json::Fields& PodInfoFields();

struct NodeInfo {
  std::string name, uid;
  Labels labels;         // all but the hostname label
  std::string hostname;  // the hostname label
  bool has_hostname = false;
  std::vector<Taint> taints;
  bool unschedulable = false;  // spec.unschedulable (kubectl cordon)
  ResourceList allocatable;
  std::vector<Device> devices;
  std::vector<NodeImage> images;

  NodeLabels labels_view() const { return {labels, hostname, has_hostname, name}; }
  bool operator==(const NodeInfo&) const = default;
};

NodeInfo ToNodeInfo(const json::Value& node);
const json::Fields& NodeInfoFields();

// Who defined a PodGroup: scheduling.volcano.sh/v1beta1 or scheduling.x-k8s.io/v1alpha1.
enum class GroupApi : uint8_t { kVolcano, kSchedulerPlugins };
inline constexpr size_t kGroupApis = 2;

struct TaskMinimum {
  std::string task;
  int64_t min_member = 0;
  bool operator==(const TaskMinimum&) const = default;
};

// One of PodGroup.spec.subGroupPolicy (Volcano): scheduler/sub_groups.h.
struct SubGroupPolicy {
  std::string name;
  int64_t size = 1;
  int64_t min_sub_groups = 0;
  schema::LabelSelector selector;  // one that cannot be read selects nothing
  std::vector<std::string> keys;   // matchLabelKeys
  bool operator==(const SubGroupPolicy&) const = default;
};

struct PodGroupInfo {
  std::string ns, name, uid;
  GroupApi api = GroupApi::kVolcano;
  int64_t min_member = 1;
  // Sorted by task, all positive. As in Volcano they count only if minMember covers them all: its
  // own jobs write every task's replicas here, also when minAvailable asks for fewer.
  std::vector<TaskMinimum> min_task_member;
  std::vector<SubGroupPolicy> sub_group_policies;
  // What the cluster must have free in sum for the gang to be tried, without terms of quotas
  // (requests.*, limits.*, count/*), which Volcano's jobs write beside the resources.
  ResourceList min_resources;
  std::string priority_class;
  Time created{};
  bool operator==(const PodGroupInfo&) const = default;
};

// Numbers that no API server would have taken count as the nearest ones that it would.
PodGroupInfo ToPodGroupInfo(const json::Value& pod_group, GroupApi api);
const json::Fields& PodGroupInfoFields();

}  // namespace muster::cluster
