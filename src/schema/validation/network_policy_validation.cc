// NetworkPolicy: k8s.io/kubernetes pkg/apis/networking/validation.

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "base/strings.h"
#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kDirections = 2;

// A range of addresses of either family.
struct Cidr {
  int family = AF_INET;
  std::array<uint8_t, 16> address = {};
  int bits = 0;

  // REQUIRES: as many bits are there.
  bool SharesBits(const Cidr& other, int count) const {
    for (int i = 0; i < count; ++i) {
      const auto byte = static_cast<size_t>(i / 8);
      if (((address[byte] ^ other.address[byte]) >> (7 - i % 8) & 1) != 0) return false;
    }
    return true;
  }
  bool HoldsMoreThan(const Cidr& other) const {
    return family == other.family && bits < other.bits && SharesBits(other, bits);
  }
};

// nullopt: CheckCidr() has said so.
std::optional<Cidr> ParseCidr(std::string_view text) {
  Problems problems;
  CheckCidr(text, problems);
  if (!problems.empty()) return std::nullopt;
  const size_t slash = text.find('/');
  const std::string address(text.substr(0, slash));
  Cidr cidr;
  cidr.family = address.find(':') == std::string::npos ? AF_INET : AF_INET6;
  cidr.bits = static_cast<int>(ParseInt(text.substr(slash + 1)).value_or(0));
  if (inet_pton(cidr.family, address.c_str(), cidr.address.data()) != 1) return std::nullopt;
  return cidr;
}

void ValidateIpBlock(const Value& block, const Path& path, FieldErrors& errors) {
  const Path cidr_path = path.Child("cidr");
  const std::string_view text = block["cidr"].AsString();
  if (text.empty()) return errors.Required(cidr_path);
  errors.Check(CheckCidr, cidr_path, block["cidr"]);
  const std::optional<Cidr> cidr = ParseCidr(text);
  if (!cidr) return;
  const Path list = path.Child("except");
  for (size_t i = 0; i < block["except"].size(); ++i) {
    const Value& except = block["except"].At(i);
    errors.Check(CheckCidr, list.Index(i), except);
    const std::optional<Cidr> part = ParseCidr(except.AsString());
    if (part && !cidr->HoldsMoreThan(*part))
      errors.Invalid(list.Index(i), except, "must be a strict subset of `cidr`");
  }
}

void ValidatePolicyPeer(const Value& peer, const Path& path, FieldErrors& errors) {
  size_t given = 0;
  for (const char* selector : {"podSelector", "namespaceSelector"}) {
    if (peer[selector].IsNull()) continue;
    ++given;
    ValidateLabelSelector(peer[selector], path.Child(selector), errors);
  }
  const bool has_block = !peer["ipBlock"].IsNull();
  if (has_block) ValidateIpBlock(peer["ipBlock"], path.Child("ipBlock"), errors);
  if (given == 0 && !has_block) errors.Required(path, "must specify a peer");
  if (given > 0 && has_block)
    errors.Forbidden(path, "may not specify both ipBlock and another peer");
}

void ValidatePolicyPort(const Value& port, const Path& path, FieldErrors& errors) {
  if (!port["protocol"].IsNull())
    errors.OneOf(path.Child("protocol"), port["protocol"], {"TCP", "UDP", "SCTP"});
  const Value& number = port["port"];
  const Value& end = port["endPort"];
  const Path end_path = path.Child("endPort");
  if (number.IsNull()) {
    if (!end.IsNull())
      errors.Invalid(end_path, end, "may not be specified when `port` is not specified");
  } else if (number.IsString()) {
    if (!end.IsNull())
      errors.Invalid(end_path, end, "may not be specified when `port` is non-numeric");
    errors.Check(CheckPortName, path.Child("port"), number);
  } else {
    errors.Port(path.Child("port"), number);
    if (end.IsNull()) return;
    if (end.AsInt() < number.AsInt())
      errors.Invalid(end_path, end, "must be greater than or equal to `port`");
    errors.Port(end_path, end);
  }
}

void ValidatePolicyRules(const Value& rules, std::string_view peers, const Path& path,
                         FieldErrors& errors) {
  for (size_t i = 0; i < rules.size(); ++i) {
    const Value& rule = rules.At(i);
    const Path place = path.Index(i);
    const Path port_list = place.Child("ports");
    for (size_t k = 0; k < rule["ports"].size(); ++k)
      ValidatePolicyPort(rule["ports"].At(k), port_list.Index(k), errors);
    const Path peer_list = place.Child(peers);
    for (size_t k = 0; k < rule[peers].size(); ++k)
      ValidatePolicyPeer(rule[peers].At(k), peer_list.Index(k), errors);
  }
}

}  // namespace

void ValidateNetworkPolicy(const Value& policy, FieldErrors& errors) {
  const Value& spec = policy["spec"];
  const Path path("spec");
  ValidateLabelSelector(spec["podSelector"], path.Child("podSelector"), errors);
  ValidatePolicyRules(spec["ingress"], "from", path.Child("ingress"), errors);
  ValidatePolicyRules(spec["egress"], "to", path.Child("egress"), errors);
  const Path types = path.Child("policyTypes");
  const Value& list = spec["policyTypes"];
  if (list.size() > kDirections)
    return errors.Invalid(types, list, "may not specify more than two policyTypes");
  for (size_t i = 0; i < list.size(); ++i)
    errors.OneOf(types.Index(i), list.At(i), {"Ingress", "Egress"});
}

}  // namespace muster::schema
