// src/apiserver/mlflow/mlflow_handler.h
//
// MLflow's REST API 2.0 over the kinds of registry.muster.dev, one registry for each namespace:
// /mlflow/NAMESPACE/api/2.0/mlflow/..., so that a client's tracking URI is https://SERVER/mlflow/NS.
// Who may do what is decided for the kinds.
//
// Thread: the loop thread.

#pragma once

#include "apiserver/call.h"
#include "apiserver/core.h"
#include "apiserver/mlflow/kinds_client.h"
#include "apiserver/request_info.h"

namespace muster::apiserver {

inline constexpr size_t kMaxMlflowBody = 1024 * 1024;

bool IsMlflowPath(const RequestInfo& info);
// {"error_code": ..., "message": ...}, which MLflow's clients understand.
net::Response MlflowErrorResponse(const Status& status);
// REQUIRES: IsMlflowPath().
void HandleMlflow(Core& core, const CallPtr& call, SubmitInside submit,
                  const std::shared_ptr<ScanTurns>& scans);

}  // namespace muster::apiserver
