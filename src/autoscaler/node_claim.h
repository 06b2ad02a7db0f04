// src/autoscaler/node_claim.h
//
// A NodeClaim (karpenter.sh/v1): one machine that was asked for. It has the name of its Node.
//
//   Launched -> Registered (its Node is there) -> Initialized (with all that it must have) -> Ready
//
// Thread: any (pure functions).

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autoscaler/offering.h"
#include "client/informer.h"
#include "json/projection.h"
#include "json/value.h"

namespace muster::autoscaler {

inline constexpr std::string_view kLaunched = "Launched";
inline constexpr std::string_view kRegistered = "Registered";
inline constexpr std::string_view kInitialized = "Initialized";
inline constexpr std::string_view kClaimReady = "Ready";
inline constexpr std::string_view kConsolidatable = "Consolidatable";

// `requests`: what the pods for which it is made want of it.
json::Value MakeNodeClaim(const NodePool& pool, const Offering& offering, const std::string& name,
                          const cluster::ResourceList& requests);

std::string PoolOf(const json::Value& claim);
cluster::CapacityType CapacityTypeOf(const json::Value& claim);
// nullptr if the catalog does not have it (any more).
const cluster::InstanceType* TypeOf(const json::Value& claim, const Catalog& catalog);

bool IsDeleting(const json::Value& object);
bool Holds(const json::Value& claim, std::string_view condition);
// The status with that condition; the time of its last change is kept if it does not change.
json::Value WithCondition(const json::Value& status, std::string_view type, bool holds,
                          std::string_view reason, std::string_view message, Time now);

// The node is Ready and has some of each extended resource that the claim must have: one whose GPUs
// have not appeared is not there yet.
bool IsInitialized(const json::Value& claim, const json::Value& node);

// The pod keeps a node from being empty: it runs there, and is not there because of the node alone.
bool Counts(const json::Value& pod);
// What that and the annotation of the pod read, besides identity fields.
const json::Fields& CountedPodFields();

// Call in Setup(). The pods must keep spec.nodeName.
void IndexByNode(client::Informer& pods);
// REQUIRES: IndexByNode(pods).
std::vector<client::ObjectKey> PodsOn(const client::Informer& pods, const std::string& node);

// The taint of a node that is closed because it goes; null if it is not.
const json::Value& DisruptedTaintOf(const json::Value& node);
// `why` is its value; may be "".
json::Value WithDisruptedTaint(const json::Value& node, std::string_view why, Time now);
json::Value WithoutDisruptedTaint(const json::Value& node);

}  // namespace muster::autoscaler
