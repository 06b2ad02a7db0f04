// src/apiserver/aggregation/api_service_strategy.h
//
// What is special about APIServices: those without a Service are available at once, and none may
// take away a group version without which this server would be none.
//
// Thread: the loop thread.

#pragma once

#include "apiserver/strategy.h"

namespace muster::apiserver {

class ApiServiceStrategy final : public Strategy {
 public:
  Status PrepareCreate(WriteContext& context, json::Value& object) override;
  Status PrepareUpdate(WriteContext& context, const json::Value& before,
                       json::Value& after) override;
  void Validate(const WriteContext& context, const json::Value* before, const json::Value& after,
                std::vector<StatusCause>& causes) override;
};

}  // namespace muster::apiserver
