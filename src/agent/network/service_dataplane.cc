#include "agent/network/service_dataplane.h"

#include <algorithm>

#include "base/check.h"

namespace muster::agent {

namespace {

bool IsEndpoint(const NftElement& element) { return !HasVerdict(element.set); }

bool HasEndpoint(const NftElements& elements, const ServiceEndpoint& endpoint) {
  return std::ranges::any_of(elements, [&](const NftElement& element) {
    return IsEndpoint(element) && EndpointOf(element) == endpoint;
  });
}

}  // namespace

Result<ServiceDataplane> ServiceDataplane::Open() {
  ASSIGN_OR_RETURN(NftSocket socket, NftSocket::Open());
  ServiceDataplane dataplane(std::move(socket));
  ASSIGN_OR_RETURN(dataplane.chains_, dataplane.socket_.ListChains());
  for (const NftSet set : kNftSets) {
    ASSIGN_OR_RETURN(const NftElements elements, dataplane.socket_.ListSet(set));
    for (const NftElement& element : elements) {
      if (const auto frontend = FrontendOf(element)) dataplane.have_[*frontend].push_back(element);
    }
    dataplane.Count(elements, +1);
  }
  for (auto& [frontend, list] : dataplane.have_) std::ranges::sort(list);
  return dataplane;
}

void ServiceDataplane::Count(const NftElements& elements, int by) {
  for (const NftElement& element : elements) {
    if (HasVerdict(element.set) && !element.chain.IsFixed()) users_[element.chain] += by;
  }
}

Status ServiceDataplane::Send(NftBatch& batch, Applied& applied) {
  if (batch.empty()) return Status::Ok();
  ++applied.transactions;
  return socket_.Apply(std::exchange(batch, NftBatch()));
}

void ServiceDataplane::DeleteUnusedChains(NftBatch& batch) {
  for (auto chain = chains_.begin(); chain != chains_.end();) {
    if (const auto users = users_.find(*chain); users != users_.end() && users->second > 0) {
      ++chain;
      continue;
    }
    users_.erase(*chain);
    batch.DeleteChain(*chain);
    chain = chains_.erase(chain);
  }
}

void ServiceDataplane::Change(const ServiceFrontend& frontend, const ServiceBackend& backend,
                              NftBatch& batch, Applied& applied) {
  NftElements& have = have_[frontend];
  NftElements want = ElementsOf(frontend, backend);
  const NftChange change = Difference(have, want);
  for (const NftElement& element : change.add) {
    if (HasVerdict(element.set) && !element.chain.IsFixed() && chains_.insert(element.chain).second)
      batch.AddChain(element.chain);
  }
  batch.Delete(change.remove);
  batch.Add(change.add);
  Count(change.remove, -1);
  Count(change.add, +1);
  applied.removed += change.remove.size();
  applied.added += change.add.size();
  if (frontend.protocol == ServiceProtocol::kUdp) {
    if (have.empty() && !backend.endpoints.empty() && (frontend.IsNodePort() || frontend.host_port))
      applied.lost_datagram_endpoints[frontend].insert(kNowhere);
    for (const NftElement& element : change.remove) {
      if (IsEndpoint(element) && !HasEndpoint(want, EndpointOf(element)))
        applied.lost_datagram_endpoints[frontend].insert(EndpointOf(element));
    }
  }
  have = std::move(want);
  if (have.empty()) have_.erase(frontend);
}

Result<ServiceDataplane::Applied> ServiceDataplane::Apply(const ServiceTable& changes) {
  Applied applied;
  NftBatch batch;
  for (const auto& [frontend, backend] : changes) {
    Change(frontend, backend, batch, applied);
    if (batch.bytes() > kMaxNftBatchBytes) RETURN_IF_ERROR(Send(batch, applied));
  }
  DeleteUnusedChains(batch);
  RETURN_IF_ERROR(Send(batch, applied));
  return applied;
}

Result<ServiceDataplane::Applied> ServiceDataplane::Replace(const ServiceTable& whole) {
  ServiceTable changes = whole;
  for (const auto& [frontend, elements] : have_) changes.try_emplace(frontend);
  return Apply(changes);
}

}  // namespace muster::agent
