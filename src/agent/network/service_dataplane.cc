#include "agent/network/service_dataplane.h"

#include <algorithm>

#include "base/check.h"

namespace muster::agent {

namespace {

bool IsEndpoint(const NftElement& element) { return HasData(element.set); }

bool HasAffinity(const NftElements& elements) {
  return std::ranges::any_of(elements, [](const NftElement& element) {
    return HasVerdict(element.set) && element.chain.affinity_seconds > 0;
  });
}

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

void ServiceDataplane::AddKeptChains(NftBatch& batch) {
  for (uint32_t endpoints = 1; endpoints <= kKeptChainEndpoints; ++endpoints) {
    for (const bool node_port : {false, true}) {
      const ServiceChain chain{.endpoints = endpoints, .node_port = node_port};
      if (chains_.insert(chain).second) batch.AddChain(chain);
    }
  }
}

void ServiceDataplane::DeleteUnusedChains(NftBatch& batch) {
  for (auto chain = chains_.begin(); chain != chains_.end();) {
    const auto users = users_.find(*chain);
    if (chain->IsKept() || (users != users_.end() && users->second > 0)) {
      ++chain;
      continue;
    }
    if (users != users_.end()) users_.erase(users);
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
  for (const NftElement& element : change.remove) {
    if (element.chain.IsOfEndpoint() && !(HasAffinity(want) && HasEndpoint(want, element.chain.to)))
      forget_clients_ = true;
  }
  have = std::move(want);
  if (have.empty()) have_.erase(frontend);
}

Result<ServiceDataplane::Applied> ServiceDataplane::Apply(const ServiceTable& changes) {
  Applied applied;
  NftBatch batch;
  AddKeptChains(batch);
  for (const auto& [frontend, backend] : changes) {
    Change(frontend, backend, batch, applied);
    if (batch.bytes() > kMaxNftBatchBytes) RETURN_IF_ERROR(Send(batch, applied));
  }
  DeleteUnusedChains(batch);
  RETURN_IF_ERROR(Send(batch, applied));
  if (std::exchange(forget_clients_, false)) RETURN_IF_ERROR(ForgetClients());
  return applied;
}

// Whose endpoint is gone, or whose Service. What is to go is added first, as it stands there: it
// may have gone by itself. Both entries of a client go in one transaction.
Status ServiceDataplane::ForgetClients() {
  constexpr size_t kClientsOfABatch = 400;
  for (const bool node : {false, true}) {
    const NftSet affinity = node ? NftSet::kNodeAffinity : NftSet::kAffinity;
    ASSIGN_OR_RETURN(NftElements lost, socket_.ListSet(affinity));
    std::erase_if(lost, [this](const NftElement& client) {
      const auto frontend = FrontendOf(client);
      const auto have = frontend ? have_.find(*frontend) : have_.end();
      return have != have_.end() && HasAffinity(have->second) &&
             HasEndpoint(have->second, EndpointOf(client));
    });
    for (size_t i = 0; i < lost.size(); i += kClientsOfABatch) {
      const NftElements entries(lost.begin() + i,
                                lost.begin() + std::min(lost.size(), i + kClientsOfABatch));
      NftElements clients = entries;
      for (NftElement& client : clients) {
        client.set = node ? NftSet::kNodeClients : NftSet::kClients;
        client.data = {};
      }
      NftBatch batch;
      batch.Add(clients);
      batch.Add(entries);
      batch.Delete(clients);
      batch.Delete(entries);
      RETURN_IF_ERROR(socket_.Apply(std::move(batch)));
    }
  }
  return Status::Ok();
}

Result<ServiceDataplane::Applied> ServiceDataplane::Replace(const ServiceTable& whole) {
  ServiceTable changes = whole;
  for (const auto& [frontend, elements] : have_) changes.try_emplace(frontend);
  return Apply(changes);
}

}  // namespace muster::agent
