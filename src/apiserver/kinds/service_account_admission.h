// src/apiserver/kinds/service_account_admission.h
//
// ServiceAccount: as upstream's admission plugin of that name, gives a new pod its account, the
// account's imagePullSecrets, and the volume with the account's token, the CA of this server and
// the namespace. Source: k8s.io/kubernetes plugin/pkg/admission/serviceaccount.
//
// Thread: the loop thread.

#pragma once

#include <string_view>

#include "apiserver/strategy.h"
#include "base/status.h"
#include "json/value.h"
#include "store/store.h"

namespace muster::apiserver {

inline constexpr std::string_view kTokenMountPath = "/var/run/secrets/kubernetes.io/serviceaccount";

// Forbidden, in upstream's words, without the account. A mirror pod gets nothing and may not name
// any. REQUIRES: `pod` has its uid; the volume's name comes of it.
Status ApplyServiceAccount(const store::Store& store, const WriteContext& context,
                           json::Value& pod);

// The pod wants the account "default", which a controller makes a moment after the namespace, and
// it is not there yet.
bool AwaitsServiceAccount(const store::Store& store, const WriteContext& context,
                          const json::Value& pod);

}  // namespace muster::apiserver
