// src/apiserver/mlflow/argument_types.h
//
// Of what type the arguments of MLflow's endpoints are. One of another type would be read as if it
// were absent: a parameter 0.1 would be kept as "".
//
// Thread: any (pure functions).

#pragma once

#include <string_view>

#include "base/status.h"
#include "json/value.h"

namespace muster::apiserver {

// Invalid, and which one, if the endpoint at `path` cannot read one of them. Null is absent.
Status CheckArgumentTypes(std::string_view path, const json::Value& arguments);

}  // namespace muster::apiserver
