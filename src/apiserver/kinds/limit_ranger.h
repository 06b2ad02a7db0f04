// src/apiserver/kinds/limit_ranger.h
//
// LimitRanger: the LimitRanges of a namespace, as upstream's admission plugin of that name acts on
// them: containers that state no request or limit get the namespace's, and what is outside the
// bounds is refused. Source: k8s.io/kubernetes plugin/pkg/admission/limitranger.
//
// Thread: the loop thread. Several ranges count in the order of their names.

#pragma once

#include "apiserver/strategy.h"
#include "base/status.h"
#include "json/value.h"
#include "store/store.h"

namespace muster::apiserver {

// Fills what the containers of a new pod do not say, and notes it in the pod's annotation
// kubernetes.io/limit-ranger.
void ApplyLimitRangeDefaults(const store::Store& store, const WriteContext& context,
                             json::Value& pod);

// Forbidden, in upstream's words. REQUIRES: a defaulted and valid object.
Status CheckPodInLimitRanges(const store::Store& store, const WriteContext& context,
                             const json::Value& pod);
Status CheckClaimInLimitRanges(const store::Store& store, const WriteContext& context,
                               const json::Value& claim);

}  // namespace muster::apiserver
