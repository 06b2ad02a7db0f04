#include "agent/node/network_publisher.h"

#include "agent/network/dns_table.h"
#include "agent/network/service_rules.h"
#include "agent/runtime/files.h"
#include "base/log.h"

namespace muster::agent {
namespace {

std::vector<json::Value> ObjectsOf(const client::Informer& informer) {
  std::vector<json::Value> out;
  out.reserve(informer.objects().size());
  for (const auto& [key, object] : informer.objects()) out.push_back(object);
  return out;
}

}  // namespace

NetworkPublisher::NetworkPublisher(Loop& loop, Pool& pool, client::InformerSet& informers,
                                   SpawnerClient& spawner, Options options,
                                   std::function<std::vector<json::Value>()> local_pods)
    : loop_(loop),
      pool_(pool),
      services_(informers.Get(client::resources::kServices, json::Fields::Whole())),
      slices_(informers.Get(client::resources::kEndpointSlices, json::Fields::Whole())),
      spawner_(spawner),
      options_(std::move(options)),
      local_pods_(std::move(local_pods)) {}

NetworkPublisher::~NetworkPublisher() {
  loop_.Cancel(dns_timer_);
  loop_.Cancel(rules_timer_);
}

Status NetworkPublisher::Start() {
  const Ipv4 address = options_.network.BridgeAddress();
  DnsServerOptions dns;
  dns.listen = {address, 53};
  dns.upstreams = UpstreamsFrom(options_.resolv_conf, address);
  dns.service_range = options_.network.service_range;
  dns.pod_range = options_.network.pod_range;
  if (options_.dns.udp.valid()) {
    ASSIGN_OR_RETURN(dns_, DnsServer::Start(dns, std::move(options_.dns)));
  } else {
    ASSIGN_OR_RETURN(dns_, DnsServer::Start(dns));
  }
  started_ = true;
  for (client::Informer* informer : {&services_, &slices_}) {
    client::InformerEvents events;
    events.on_change =
        lifetime_.Guard([this](const client::ObjectKey&, const json::Value&, const json::Value&) {
          PublishDns();
          PublishRules();
        });
    events.on_synced = lifetime_.Guard([this] {
      PublishDns();
      PublishRules();
    });
    informer->Subscribe(std::move(events));
  }
  PublishDns();
  return Status::Ok();
}

void NetworkPublisher::PublishDns() {
  // Before both lists are known, the server holds questions rather than deny what may exist.
  if (!started_ || dns_timer_ != 0 || !services_.Synced() || !slices_.Synced()) return;
  dns_timer_ = loop_.After(kDnsDelay, [this] {
    dns_timer_ = 0;
    PublishDnsNow();
  });
}

void NetworkPublisher::PublishDnsNow() {
  // One table at a time: the pool might finish an older one last.
  if (building_dns_) return PublishDns();
  building_dns_ = true;
  DnsInput input;
  input.services = ObjectsOf(services_);
  input.endpoint_slices = ObjectsOf(slices_);
  input.local_pods = local_pods_();
  input.cluster_domain = options_.cluster_domain;
  auto table = std::make_shared<std::shared_ptr<const DnsTable>>();
  pool_.Run([input = std::move(input), table] { *table = DnsTable::Build(input); }, loop_,
            lifetime_.Guard([this, table] {
              building_dns_ = false;
              dns_->Publish(*table);
            }));
}

void NetworkPublisher::PublishRules() {
  if (!started_ || rules_timer_ != 0 || !services_.Synced() || !slices_.Synced()) return;
  rules_timer_ = loop_.After(kRulesPeriod, [this] {
    rules_timer_ = 0;
    ApplyRules();
  });
}

void NetworkPublisher::ApplyRules() {
  if (applying_) return PublishRules();
  auto rules = std::make_shared<std::string>();
  auto status = std::make_shared<Status>();
  applying_ = true;
  pool_.Run(
      [services = ObjectsOf(services_), slices = ObjectsOf(slices_), network = options_.network,
       before = applied_rules_, file = options_.rules_file, rules, status] {
        *rules = ServiceRules(network, ServicePorts(services, slices));
        if (*rules != before) *status = WriteFileAtomic(file, *rules, 0600);
      },
      loop_, lifetime_.Guard([this, rules, status] {
        if (*rules == applied_rules_ || !status->ok()) {
          applying_ = false;
          if (!status->ok()) LOG_WARN("agent: write service rules: {}", status->message());
          return;
        }
        spawner_.Call("applyRules", json::Obj({{"file", options_.rules_file}}),
                      lifetime_.Guard([this, rules](Result<json::Value> answer) {
                        applying_ = false;
                        if (answer) {
                          applied_rules_ = *rules;
                        } else {
                          LOG_WARN("agent: apply service rules: {}", answer.error().message());
                        }
                      }));
      }));
}

}  // namespace muster::agent
