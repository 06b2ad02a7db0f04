// src/controllers/job/job_conditions.h
//
// The conditions of a Job while a pass works on them. A Job ends in two steps: FailureTarget or
// SuccessCriteriaMet say how it will end, Failed or Complete that its pods are over and counted.
//
// Thread: any (a value).

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "json/value.h"

namespace muster::controllers {

struct JobEnd {
  std::string type;  // FailureTarget or SuccessCriteriaMet
  std::string reason, message;
};

class JobConditions {
 public:
  JobConditions(json::Value conditions, Time now) : list_(std::move(conditions)), now_(now) {}

  bool Holds(std::string_view type) const;
  // How the Job will end, if that is decided.
  std::optional<JobEnd> DecidedEnd() const;
  // False if the condition was so before; one that is not there is "False".
  bool Ensure(std::string_view type, std::string_view status, std::string_view reason,
              std::string_view message);
  json::Value PutInto(json::Value status) const;

 private:
  json::Value list_;
  Time now_;
};

}  // namespace muster::controllers
