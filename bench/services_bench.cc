// Services in the packet filter of a node: 5,000 Services with 50,000 endpoints, and one change.
// Prints `name value unit` lines; run it as root in a network namespace without anything else
// (bench/run does). The floors are of the whole way from API objects to the kernel's answer.

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "agent/network/host_network.h"
#include "agent/network/service_dataplane.h"
#include "agent/network/service_planner.h"
#include "base/check.h"
#include "base/time.h"

namespace muster::agent {
namespace {

constexpr int kServices = 5000, kEndpoints = 10, kChanges = 200;

struct Objects {
  json::Value service, slice;
};

json::Value Endpoint(int number, bool ready) {
  return json::Obj(
      {{"addresses", json::List({Ipv4{0x0A2A0002 + static_cast<uint32_t>(number)}.ToString()})},
       {"conditions", json::Obj({{"ready", ready}, {"serving", ready}, {"terminating", false}})},
       {"nodeName", "n1"}});
}

Objects MakeObjects(int number, int ready) {
  json::Array endpoints;
  for (int i = 0; i < kEndpoints; ++i)
    endpoints.push_back(Endpoint(number * kEndpoints + i, i < ready));
  const std::string address = Ipv4{0x0A2B0002 + static_cast<uint32_t>(number)}.ToString();
  return {json::Obj({{"spec", json::Obj({{"clusterIP", address},
                                         {"ports", json::List({json::Obj(
                                                       {{"name", "http"}, {"port", 80}})})}})}}),
          json::Obj({{"ports", json::List({json::Obj({{"name", "http"}, {"port", 8080}})})},
                     {"endpoints", json::Value(std::move(endpoints))}})};
}

double MillisecondsSince(Duration start) {
  return std::chrono::duration<double, std::milli>(RealClock().Monotonic() - start).count();
}

void Set(ServiceRows& rows, int number, const Objects& objects) {
  rows.Set({"default", fmt::format("s{}", number)},
           PlanService(objects.service, {objects.slice}, {"n1"}));
}

// Through the text, as between the agent and the spawner.
ServiceTable Sent(const ServiceTable& table) { return *ParseServiceTable(ToText(table)); }

void Run() {
  CHECK(ApplyNft(HostRules(NodeNetworkConfig())).ok());
  std::vector<Objects> objects;
  for (int i = 0; i < kServices; ++i) objects.push_back(MakeObjects(i, kEndpoints));

  Duration start = RealClock().Monotonic();
  ServiceRows rows;
  for (int i = 0; i < kServices; ++i) Set(rows, i, objects[static_cast<size_t>(i)]);
  (void)rows.TakeChanges();
  ServiceDataplane dataplane = *ServiceDataplane::Open();
  const auto loaded = dataplane.Replace(Sent(rows.Whole()));
  CHECK(loaded.has_value());
  fmt::print("full_load_ms {:.1f} ms\n", MillisecondsSince(start));
  CHECK(loaded->added == size_t{kServices} * (kEndpoints + 1));

  std::vector<double> changes;
  for (int i = 0; i < kChanges; ++i) {
    const int number = i * 37 % kServices;
    const Objects changed = MakeObjects(number, i % 2 == 0 ? kEndpoints - 1 : kEndpoints - 2);
    start = RealClock().Monotonic();
    Set(rows, number, changed);
    const auto applied = dataplane.Apply(Sent(rows.TakeChanges()));
    CHECK(applied.has_value() && applied->added > 0);
    changes.push_back(MillisecondsSince(start));
  }
  std::ranges::sort(changes);
  fmt::print("one_change_p50_ms {:.3f} ms\n", changes[kChanges / 2]);
  fmt::print("one_change_p99_ms {:.3f} ms\n", changes[kChanges * 99 / 100]);
  fmt::print("one_change_max_ms {:.3f} ms\n", changes.back());

  // What an agent does that starts again: ask the kernel, find nothing to do.
  start = RealClock().Monotonic();
  const auto again = ServiceDataplane::Open()->Replace(Sent(rows.Whole()));
  CHECK(again.has_value() && again->transactions == 0);
  fmt::print("second_pass_ms {:.1f} ms\n", MillisecondsSince(start));
  CHECK(ApplyNft(fmt::format("delete table ip {}\n", kNftTable)).ok());
}

}  // namespace
}  // namespace muster::agent

int main() {
  muster::agent::Run();
  return 0;
}
