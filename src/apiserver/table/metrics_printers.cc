// The tables of metrics.k8s.io. Columns: kubernetes-sigs/metrics-server pkg/api/table.go.

#include "apiserver/table/printers.h"
#include "schema/quantity_syntax.h"

namespace muster::apiserver {

json::Array NodeMetricsCells(const json::Value& metrics, Time) {
  return {NameCell(metrics), metrics["usage"]["cpu"].Str(), metrics["usage"]["memory"].Str(),
          metrics["window"].Str()};
}

json::Array PodMetricsCells(const json::Value& metrics, Time) {
  schema::Amount cpu, memory;
  for (const json::Value& container : metrics["containers"].items()) {
    for (const auto& [sum, name] : {std::pair(&cpu, "cpu"), std::pair(&memory, "memory")}) {
      const Result<schema::Amount> one = schema::AmountFromJson(container["usage"][name]);
      if (!one) continue;
      sum->nano += one->nano;
      sum->format = one->format;
    }
  }
  return {NameCell(metrics), cpu.Canonical(), memory.Canonical(), metrics["window"].Str()};
}

}  // namespace muster::apiserver
