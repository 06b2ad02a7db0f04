#include "serving/hosts.h"

#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "base/strings.h"
#include "net/url.h"
#include "schema/names.h"
#include "serving/inference_service.h"

namespace muster::serving {
namespace {

using client::ObjectKey;
using json::Value;

constexpr std::string_view kClusterSuffixes[] = {".svc.cluster.local", ".svc"};

std::string Named(const Value& object) {
  return fmt::format("{} {}", object["kind"].AsString(), client::KeyOf(object).ToString());
}

// As the gateway finds it for who asks from `ns` (gateway/route_table.h).
bool LeadsToAny(const std::string& host, std::string_view ns, const client::Informer& services,
                const client::Informer& cluster_services) {
  const std::string_view inner = WithoutClusterSuffix(host);
  size_t of_that_name = 0;
  for (const auto& [key, object] : services.objects()) {
    if (host == SharedHostOf(key.name, key.ns) || host == OwnHostOf(key.name, key.ns) ||
        inner == fmt::format("{}.{}", key.name, key.ns))
      return true;
    const Value* service = cluster_services.Find(key);
    if (service != nullptr && (*service)["spec"]["clusterIP"].AsString() == host) return true;
    if (inner != key.name) continue;
    if (key.ns == ns) return true;
    ++of_that_name;
  }
  return of_that_name == 1;
}

}  // namespace

std::string SharedHostOf(std::string_view name, std::string_view ns) {
  return fmt::format("{}-{}.{}", name, ns, kIngressDomain);
}

std::string OwnHostOf(std::string_view name, std::string_view ns) {
  return fmt::format("{}.{}.{}", name, ns, kIngressDomain);
}

std::string ClusterUrlOf(std::string_view name, std::string_view ns) {
  return fmt::format("http://{}.{}.svc.cluster.local", name, ns);
}

std::string HostName(std::string_view host) {
  const size_t colon = host.rfind(':');
  if (colon != host.npos && host.find(']', colon) == host.npos) host = host.substr(0, colon);
  while (host.ends_with('.')) host.remove_suffix(1);
  return ToLower(host);
}

std::string_view WithoutClusterSuffix(std::string_view host) {
  for (const std::string_view suffix : kClusterSuffixes) {
    if (host.ends_with(suffix)) return host.substr(0, host.size() - suffix.size());
  }
  return host;
}

bool HasHostBefore(const Value& a, const Value& b) {
  const auto rank = [](const Value& object) {
    const Value& metadata = object["metadata"];
    return std::tuple(metadata["creationTimestamp"].AsString(), metadata["namespace"].AsString(),
                      metadata["name"].AsString(), object["kind"].AsString());
  };
  return rank(a) < rank(b);
}

std::string HostWanted(const Value& object) {
  const Value& metadata = object["metadata"];
  if (metadata.Has("deletionTimestamp") || ParseInferenceService(object).stopped) return "";
  return SharedHostOf(metadata["name"].AsString(), metadata["namespace"].AsString());
}

bool HasNameInstead(const Value* other, const Value& object) {
  return other != nullptr && !HostWanted(*other).empty() && HasHostBefore(*other, object);
}

void IndexByHost(client::Informer& informer) {
  informer.AddIndex(kByHost, [](const Value& object) -> std::vector<std::string> {
    return {HostWanted(object)};
  });
}

std::string HostOwner(const client::Informer& services, const client::Informer& graphs,
                      const Value& object) {
  const std::string host = HostWanted(object);
  const Value* owner = &object;
  for (const client::Informer* informer : {&services, &graphs}) {
    for (const ObjectKey& key : informer->Lookup(kByHost, host)) {
      const Value* other = informer->Find(key);
      if (client::KeyOf(*other) == client::KeyOf(object)) continue;  // NameTaken is said of these
      if (HasHostBefore(*other, *owner)) owner = other;
    }
  }
  return owner == &object || host.empty() ? "" : Named(*owner);
}

client::Trigger OnSharedHost(const client::Resource& resource, const client::Informer& whom) {
  const auto place = [](const Value& object) {  // among those that want one host
    return std::pair(HostWanted(object), object["metadata"]["creationTimestamp"].Str());
  };
  return {resource, [&whom, place](const ObjectKey& key, const Value& before, const Value& after) {
            const bool same = !before.IsNull() && !after.IsNull() && place(before) == place(after);
            if (same) return std::vector<ObjectKey>();
            return whom.Lookup(kByHost, SharedHostOf(key.name, key.ns));
          }};
}

std::string UrlFault(std::string_view url, std::string_view ns, const client::Informer& services,
                     const client::Informer& cluster_services) {
  const Result<net::ParsedUrl> parsed = net::ParseUrl(url);
  if (!parsed) return fmt::format("serviceUrl {}: {}", url, parsed.error().message());
  const std::string& written = parsed->endpoint.host;
  const std::string host = schema::IsIp(written) ? written : HostName(written);
  if (LeadsToAny(host, ns, services, cluster_services)) return "";
  schema::Problems problems;
  if (schema::IsIp(host)) schema::CheckOrdinaryIp(host, problems);
  const std::string why = problems.empty() ? "" : fmt::format(" (it {})", problems[0]);
  return fmt::format(
      "serviceUrl {}: {} is no InferenceService{}; a graph reaches InferenceServices only", url,
      host, why);
}

}  // namespace muster::serving
