#include "agent/user_node/refusal.h"

#include <fmt/core.h>

#include "base/files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

std::optional<std::string> Setting(const std::string& sysctls, const char* name) {
  const auto text = ReadSmallFile(sysctls + "/" + name);
  if (!text) return std::nullopt;
  return std::string(Trim(*text));
}

}  // namespace

RefusalFacts GatherRefusalFacts(std::string error, const std::string& sysctls) {
  return {Setting(sysctls, "user/max_user_namespaces"),
          Setting(sysctls, "kernel/unprivileged_userns_clone"),
          Setting(sysctls, "kernel/apparmor_restrict_unprivileged_userns"), std::move(error)};
}

Refusal ExplainRefusal(const RefusalFacts& facts) {
  if (facts.unprivileged_clone == "0") {
    return {"user namespaces are for root alone (kernel.unprivileged_userns_clone is 0)",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1"};
  }
  if (facts.max_user_namespaces == "0") {
    return {"user namespaces are switched off (user.max_user_namespaces is 0)",
            "sudo sysctl -w user.max_user_namespaces=16384"};
  }
  if (facts.apparmor_restricts == "1") {
    return {fmt::format("AppArmor takes all rights from user namespaces of ordinary users "
                        "(kernel.apparmor_restrict_unprivileged_userns is 1): {}",
                        facts.error),
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"};
  }
  return {fmt::format("the kernel refuses namespaces: {}", facts.error),
          "run muster up outside of containers and chroots, or as root"};
}

}  // namespace muster::agent
