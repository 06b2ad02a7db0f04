#include "ray/ray.h"

#include <memory>

#include "ray/cluster_controller.h"
#include "ray/job_controller.h"
#include "ray/service_controller.h"

namespace muster::ray {

void AddAll(client::Runtime& runtime) {
  runtime.Add(std::make_unique<ClusterController>());
  runtime.Add(std::make_unique<JobController>());
  runtime.Add(std::make_unique<ServiceController>());
}

}  // namespace muster::ray
