#include "agent/node/network_publisher.h"

#include "agent/network/dns_table.h"
#include "agent/network/host_port_planner.h"
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

// Far below what one message to the spawner may have.
constexpr size_t kMaxTableInMessage = kMaxSpawnerMessageBytes / 4;
constexpr char kByService[] = "network/service";

std::string ZoneOf(const json::Value& node) {
  return node["metadata"]["labels"]["topology.kubernetes.io/zone"].Str();
}

client::ObjectKey ServiceOf(const json::Value& slice) {
  return {slice["metadata"]["namespace"].Str(),
          slice["metadata"]["labels"]["kubernetes.io/service-name"].Str()};
}

std::string IndexKey(const client::ObjectKey& service) { return service.ns + "/" + service.name; }

// No Service has it; it comes before all of theirs.
ServiceRows::Key KeyOfPod(const std::string& uid) { return {"", uid}; }

// One Service with its slices, as the pool needs it.
struct ServiceInput {
  client::ObjectKey key;
  json::Value service;
  std::vector<json::Value> slices;
};

}  // namespace

NetworkPublisher::NetworkPublisher(Loop& loop, Pool& pool, client::InformerSet& informers,
                                   SpawnerClient& spawner, Options options, LocalPods local_pods)
    : loop_(loop),
      pool_(pool),
      services_(informers.Get(client::resources::kServices, json::Fields::Whole())),
      slices_(informers.Get(client::resources::kEndpointSlices, json::Fields::Whole())),
      node_(informers.Get(client::resources::kNodes, {{"metadata", "labels"}},
                          "metadata.name=" + options.node_name)),
      spawner_(spawner),
      options_(std::move(options)),
      local_pods_(std::move(local_pods)) {
  slices_.AddIndex(kByService, [](const json::Value& slice) {
    return std::vector<std::string>{IndexKey(ServiceOf(slice))};
  });
}

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
  if (options_.health_io != nullptr) {
    health_checks_ = std::make_unique<HealthCheckPorts>(
        loop_, *options_.health_io, [this](const client::ObjectKey& service) {
          return CountLocalEndpoints(SlicesOf(service), options_.node_name);
        });
  }
  started_ = true;
  client::InformerEvents of_services;
  of_services.on_change = lifetime_.Guard(
      [this](const client::ObjectKey& key, const json::Value&, const json::Value& after) {
        PublishDns();
        NoteService(key);
        if (health_checks_ != nullptr) health_checks_->Follow(key, after);
      });
  client::InformerEvents of_slices;
  of_slices.on_change = lifetime_.Guard(
      [this](const client::ObjectKey&, const json::Value& before, const json::Value& after) {
        PublishDns();
        NoteSlice(before);
        NoteSlice(after);
      });
  client::InformerEvents of_node;
  of_node.on_change =
      lifetime_.Guard([this](const client::ObjectKey&, const json::Value& before,
                             const json::Value& after) { NoteNode(before, after); });
  of_services.on_synced = of_slices.on_synced = of_node.on_synced = lifetime_.Guard([this] {
    PublishDns();
    PublishRules(kRulesDelay);
  });
  services_.Subscribe(std::move(of_services));
  slices_.Subscribe(std::move(of_slices));
  node_.Subscribe(std::move(of_node));
  PublishDns();
  return Status::Ok();
}

void NetworkPublisher::LocalPodsChanged() {
  PublishDns();
  const auto pods = local_pods_.with_host_ports();
  if (!pods) return;
  host_ports_known_ = true;
  NoteHostPorts(*pods);
  if (whole_table_ || !changed_ports_.empty()) PublishRules(kRulesDelay);
}

void NetworkPublisher::NoteHostPorts(const std::vector<json::Value>& pods) {
  std::map<std::string, ServiceTable> now;
  for (const json::Value& pod : pods) {
    if (ServiceTable rows = PlanHostPorts(pod); !rows.empty())
      now[pod["metadata"]["uid"].Str()] = std::move(rows);
  }
  for (const auto& [uid, rows] : host_ports_)
    if (!now.contains(uid)) changed_ports_[uid] = {};
  for (const auto& [uid, rows] : now) {
    const auto known = host_ports_.find(uid);
    if (known == host_ports_.end() || known->second != rows) changed_ports_[uid] = rows;
  }
  host_ports_ = std::move(now);
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
  input.local_pods = local_pods_.all();
  input.cluster_domain = options_.cluster_domain;
  auto table = std::make_shared<std::shared_ptr<const DnsTable>>();
  pool_.Run([input = std::move(input), table] { *table = DnsTable::Build(input); }, loop_,
            lifetime_.Guard([this, table] {
              building_dns_ = false;
              dns_->Publish(*table);
            }));
}

void NetworkPublisher::NoteService(const client::ObjectKey& service) {
  changed_services_.insert(service);
  PublishRules(kRulesDelay);
}

std::vector<json::Value> NetworkPublisher::SlicesOf(const client::ObjectKey& service) const {
  std::vector<json::Value> slices;
  for (const client::ObjectKey& slice : slices_.Lookup(kByService, IndexKey(service)))
    slices.push_back(*slices_.Find(slice));
  return slices;
}

void NetworkPublisher::NoteSlice(const json::Value& slice) {
  if (!slice.IsNull()) NoteService(ServiceOf(slice));
}

void NetworkPublisher::NoteNode(const json::Value& before, const json::Value& after) {
  if (ZoneOf(before) == ZoneOf(after)) return;
  for (const auto& [key, service] : services_.objects()) changed_services_.insert(key);
  PublishRules(kRulesDelay);
}

void NetworkPublisher::PublishRules(Duration delay) {
  if (!started_ || rules_timer_ != 0 || !services_.Synced() || !slices_.Synced() ||
      !node_.Synced() || !host_ports_known_)
    return;
  rules_timer_ = loop_.After(delay, [this] {
    rules_timer_ = 0;
    PlanRules();
  });
}

void NetworkPublisher::PlanRules() {
  if (planning_) return;  // OnApplied() looks again
  planning_ = true;
  std::vector<ServiceInput> inputs;
  for (const client::ObjectKey& key : std::exchange(changed_services_, {})) {
    ServiceInput& input = inputs.emplace_back();
    input.key = key;
    if (const json::Value* service = services_.Find(key)) input.service = *service;
    input.slices = SlicesOf(key);
  }
  NodePlace place{options_.node_name};
  if (const json::Value* node = node_.Find({"", options_.node_name})) place.zone = ZoneOf(*node);
  auto table = std::make_shared<std::string>();
  pool_.Run(
      [inputs = std::move(inputs), ports = std::exchange(changed_ports_, {}),
       place = std::move(place), rows = rows_, whole = whole_table_, table] {
        for (const auto& [uid, own] : ports) rows->Set(KeyOfPod(uid), own);
        for (const ServiceInput& input : inputs) {
          rows->Set({input.key.ns, input.key.name},
                    PlanService(input.service, input.slices, place));
        }
        const ServiceTable changes = rows->TakeChanges();
        *table = ToText(whole ? rows->Whole() : changes);
      },
      loop_, lifetime_.Guard([this, table] { ApplyRules(*table); }));
}

void NetworkPublisher::ApplyRules(const std::string& table) {
  if (table.empty() && !whole_table_) return OnApplied(Status::Ok());
  json::Value request = json::Obj({{"whole", whole_table_}});
  if (table.size() <= kMaxTableInMessage) {
    request = request.Set("table", table);
  } else {
    // The text of thousands of Services does not fit a message.
    const Status written = WriteFile(options_.table_file, table, 0600);
    if (!written.ok()) return OnApplied(written);
    request = request.Set("file", options_.table_file);
  }
  spawner_.Call("applyServices", std::move(request),
                lifetime_.Guard([this](Result<json::Value> answer) {
                  OnApplied(answer ? Status::Ok() : answer.error());
                }));
}

void NetworkPublisher::OnApplied(const Status& status) {
  planning_ = false;
  whole_table_ = !status.ok();
  if (!status.ok()) {
    LOG_WARN("agent: apply service rules: {}", status.message());
    return PublishRules(kRulesRetry);
  }
  if (!changed_services_.empty() || !changed_ports_.empty()) PublishRules(kRulesDelay);
}

}  // namespace muster::agent
