// src/apiserver/table/printers.h
//
// The cells of built-in kinds, one function each. table.cc joins them with their columns.
//
// Thread: any (pure functions).

#pragma once

#include <string>
#include <string_view>

#include "apiserver/table/table.h"
#include "base/time.h"
#include "json/value.h"

namespace muster::apiserver {

using CellsOf = json::Array (*)(const json::Value& object, Time now);

json::Array PodCells(const json::Value& pod, Time now);
json::Array NodeCells(const json::Value& node, Time now);
json::Array NamespaceCells(const json::Value& ns, Time now);
json::Array ServiceCells(const json::Value& service, Time now);
json::Array ConfigMapCells(const json::Value& config_map, Time now);
json::Array SecretCells(const json::Value& secret, Time now);
json::Array ServiceAccountCells(const json::Value& account, Time now);
json::Array PersistentVolumeClaimCells(const json::Value& claim, Time now);
json::Array EventCells(const json::Value& event, Time now);
json::Array EndpointsCells(const json::Value& endpoints, Time now);
json::Array EndpointSliceCells(const json::Value& slice, Time now);
json::Array LeaseCells(const json::Value& lease, Time now);
json::Array PriorityClassCells(const json::Value& priority_class, Time now);
json::Array CustomResourceDefinitionCells(const json::Value& crd, Time now);

json::Array DeploymentCells(const json::Value& deployment, Time now);
json::Array ReplicaSetCells(const json::Value& replica_set, Time now);
json::Array StatefulSetCells(const json::Value& stateful_set, Time now);
json::Array DaemonSetCells(const json::Value& daemon_set, Time now);
json::Array ControllerRevisionCells(const json::Value& revision, Time now);
json::Array JobCells(const json::Value& job, Time now);
json::Array CronJobCells(const json::Value& cron_job, Time now);
json::Array PodDisruptionBudgetCells(const json::Value& budget, Time now);
json::Array ResourceQuotaCells(const json::Value& quota, Time now);
json::Array LimitRangeCells(const json::Value& range, Time now);
json::Array HorizontalPodAutoscalerCells(const json::Value& autoscaler, Time now);
json::Array NodeMetricsCells(const json::Value& metrics, Time now);
json::Array PodMetricsCells(const json::Value& metrics, Time now);
json::Array RoleCells(const json::Value& role, Time now);
json::Array RoleBindingCells(const json::Value& binding, Time now);
json::Array IngressCells(const json::Value& ingress, Time now);
json::Array IngressClassCells(const json::Value& ingress_class, Time now);
// Of both kinds.
json::Array WebhookConfigurationCells(const json::Value& configuration, Time now);
json::Array ApiServiceCells(const json::Value& service, Time now);
json::Array NetworkPolicyCells(const json::Value& policy, Time now);
json::Array PersistentVolumeCells(const json::Value& volume, Time now);
json::Array StorageClassCells(const json::Value& storage_class, Time now);
json::Array VolumeAttributesClassCells(const json::Value& attributes, Time now);
json::Array CsiDriverCells(const json::Value& driver, Time now);
json::Array CsiNodeCells(const json::Value& node, Time now);
json::Array CsiStorageCapacityCells(const json::Value& capacity, Time now);
json::Array VolumeAttachmentCells(const json::Value& attachment, Time now);

std::string OrNone(std::string_view text);              // "<none>" for ""
std::string SelectorText(const json::Value& selector);  // a metav1.LabelSelector
// metadata.name, and how long ago the object was created.
json::Value NameCell(const json::Value& object);
std::string AgeOf(const json::Value& object, Time now);
std::string AccessModes(const json::Value& modes);    // "RWO,ROX"
std::string FormatLabels(const json::Value& labels);  // "a=b,c=d"; "<none>" without any

}  // namespace muster::apiserver
