// src/serving/builtin_runtime.h
//
// The model server that every cluster has: a ClusterServingRuntime for scikit-learn whose program
// (sklearn_server.py) is part of this binary. Its pods read it from a ConfigMap of their namespace,
// so it runs wherever there are Python and scikit-learn: on this machine's own root (--images
// machine) as in KServe's image.
//
// Thread: any (pure).

#pragma once

#include <string_view>

#include "json/value.h"

namespace muster::serving {

inline constexpr char kSklearnRuntime[] = "kserve-sklearnserver";  // upstream's name
inline constexpr char kSklearnConfigMap[] = "muster-sklearnserver";
inline constexpr char kSklearnProgram[] = "sklearn_server.py";

std::string_view SklearnProgram();  // its text
json::Value MakeSklearnRuntime();   // the ClusterServingRuntime
json::Value MakeSklearnConfigMap(std::string_view ns);
// Whether pods of this template need the ConfigMap.
bool UsesSklearnConfigMap(const json::Value& pod_spec);

}  // namespace muster::serving
