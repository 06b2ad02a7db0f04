// src/gpu/xids.h
//
// XIDs: the numbers under which NVIDIA's driver reports errors of a GPU, what they mean, and which
// of them say that the GPU, not a program on it, has failed.
//
// Thread: any (values and pure functions).
// Source: NVIDIA's catalog of XID errors; which ones its device plugin passes over.

#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace muster::gpu {

// "XID 79: the GPU has fallen off the bus".
std::string DescribeXid(int64_t xid);

// Which XIDs take a GPU out of service: all but those that programs cause.
class XidPolicy {
 public:
  XidPolicy() = default;
  // As the variables of NVIDIA's device plugin: XIDs with commas between them, or "all" ("xids" is
  // the same). What is in both lists takes a GPU out of service. Words that are none are passed
  // over.
  XidPolicy(std::string_view disabled, std::string_view enabled);
  // By DP_DISABLE_HEALTHCHECKS and DP_ENABLE_HEALTHCHECKS of this process.
  static XidPolicy FromEnvironment();

  bool IsFatal(int64_t xid) const;

 private:
  struct List {
    bool all = false;
    std::set<int64_t> xids;
    bool Has(int64_t xid) const { return all || xids.contains(xid); }
  };
  static List Parse(std::string_view text);

  List disabled_, enabled_;
};

}  // namespace muster::gpu
