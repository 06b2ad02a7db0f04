// src/apiserver/kinds/service_strategy.h
//
// Services: cluster addresses and node ports are given out, kept and given back.
//
// Thread:     the loop thread.
// Invariants: every service in the store owns its cluster address and its node ports in the
//             allocators.

#pragma once

#include <set>

#include "apiserver/kinds/ip_allocator.h"
#include "apiserver/kinds/node_port_allocator.h"
#include "apiserver/strategy.h"
#include "store/store.h"

namespace muster::apiserver {

class ServiceStrategy : public Strategy {
 public:
  // Takes the addresses of the services that are in the store.
  ServiceStrategy(IpAllocator allocator, const store::Store& store);

  bool returns_deleted_object() const override { return true; }
  bool watches_commits() const override { return true; }
  Status PrepareCreate(WriteContext& context, json::Value& object) override;
  Status PrepareUpdate(WriteContext& context, const json::Value& before,
                       json::Value& after) override;
  void Validate(const WriteContext& context, const json::Value* before, const json::Value& after,
                std::vector<StatusCause>& causes) override;
  Status Reserve(WriteContext& context, const json::Value* before, json::Value& object) override;
  void Abandon(const json::Value* before, const json::Value& object) override;
  void Committed(const json::Value* before, const json::Value* after) override;

 private:
  Status ReserveAddress(WriteContext& context, const json::Value* before, json::Value& object);
  Status ReservePorts(WriteContext& context, const std::set<int64_t>& own, json::Value& object);
  Status ReserveHealthPort(const json::Value* before, json::Value& object);

  IpAllocator allocator_;
  NodePortAllocator node_ports_;
};

}  // namespace muster::apiserver
