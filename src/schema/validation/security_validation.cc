// Security contexts of pods and containers, and what an operating system does not have:
// k8s.io/kubernetes pkg/apis/core/validation.

#include <algorithm>
#include <array>
#include <set>

#include "base/strings.h"
#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxSysctlLength = 253;
constexpr size_t kMaxAppArmorProfileBytes = 4095;  // PATH_MAX less one
constexpr std::string_view kSysctlRule =
    "must have at most 253 characters and match regex "
    "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

void ValidateId(const Value& id, const Path& path, FieldErrors& errors) {
  if (id.IsNull() || (id.AsInt() >= 0 && id.AsInt() <= INT32_MAX)) return;
  errors.Invalid(path, id, "must be between 0 and 2147483647, inclusive");
}

void ValidateSeccomp(const Value& profile, const Path& path, FieldErrors& errors) {
  const std::string_view type = profile["type"].AsString();
  if (type.empty()) {
    errors.Required(path.Child("type"), "type is required when seccompProfile is set");
  } else {
    errors.OneOf(path.Child("type"), profile["type"],
                 {"Localhost", "RuntimeDefault", "Unconfined"});
  }
  const Value& file = profile["localhostProfile"];
  const Path file_path = path.Child("localhostProfile");
  if (type == "Localhost") {
    if (file.IsNull()) {
      errors.Required(file_path, "must be set when seccomp type is Localhost");
    } else {
      ValidateInnerPath(file, file_path, errors);
    }
  } else if (!file.IsNull()) {
    errors.Invalid(file_path, profile, "can only be set when seccomp type is Localhost");
  }
}

void ValidateAppArmor(const Value& profile, const Path& path, FieldErrors& errors) {
  const std::string_view type = profile["type"].AsString();
  const Value& name = profile["localhostProfile"];
  const Path name_path = path.Child("localhostProfile");
  if (type.empty()) {
    errors.Required(path.Child("type"), "type is required when appArmorProfile is set");
  } else if (!errors.OneOf(path.Child("type"), profile["type"],
                           {"Localhost", "RuntimeDefault", "Unconfined"})) {
    return;
  } else if (type != "Localhost") {
    if (!name.IsNull())
      errors.Invalid(name_path, name, "can only be set when AppArmor type is Localhost");
  } else if (name.AsString() != Trim(name.AsString())) {
    errors.Invalid(name_path, name, "must not be padded with whitespace");
  } else if (name.AsString().empty()) {
    errors.Required(name_path, "must be set when AppArmor type is Localhost");
  } else if (name.AsString().size() > kMaxAppArmorProfileBytes) {
    errors.TooLong(name_path, kMaxAppArmorProfileBytes);
  }
}

// What pods and containers say in the same words.
void ValidateShared(const Value& security, const Path& path, FieldErrors& errors) {
  for (const char* key : {"runAsUser", "runAsGroup"})
    ValidateId(security[key], path.Child(key), errors);
  if (!security["seccompProfile"].IsNull())
    ValidateSeccomp(security["seccompProfile"], path.Child("seccompProfile"), errors);
  if (!security["appArmorProfile"].IsNull())
    ValidateAppArmor(security["appArmorProfile"], path.Child("appArmorProfile"), errors);
}

// Segments of lower case letters and digits, with '-' and '_' inside, joined by '.' or '/'.
bool IsSysctlName(std::string_view name) {
  const auto is_alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const auto is_segment = [&](std::string_view segment) {
    return !segment.empty() && is_alnum(segment.front()) && is_alnum(segment.back()) &&
           std::ranges::all_of(segment,
                               [&](char c) { return is_alnum(c) || c == '-' || c == '_'; });
  };
  std::string dotted(name);
  std::ranges::replace(dotted, '/', '.');
  const std::vector<std::string_view> segments = Split(dotted, '.');
  return name.size() <= kMaxSysctlLength && std::ranges::all_of(segments, is_segment);
}

bool IsIpcSysctl(std::string_view name) {
  return name == "kernel.sem" || name.starts_with("kernel.shm") || name.starts_with("kernel.msg") ||
         name.starts_with("fs.mqueue.");
}

void ValidateSysctls(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& sysctls = spec["securityContext"]["sysctls"];
  std::set<std::string> names;
  for (size_t i = 0; i < sysctls.size(); ++i) {
    const Path item = path.Index(i);
    const Path place = item.Child("name");
    const std::string name = sysctls.At(i)["name"].Str();
    if (name.empty()) {
      errors.Required(place);
    } else if (!IsSysctlName(name)) {
      errors.Invalid(place, name, kSysctlRule);
    } else if (!names.insert(name).second) {
      errors.Duplicate(place, name);
    }
    if (spec["hostNetwork"].AsBool() && name.starts_with("net.")) {
      errors.Invalid(place, name, "may not be specified when 'hostNetwork' is true");
    } else if (spec["hostIPC"].AsBool() && IsIpcSysctl(name)) {
      errors.Invalid(place, name, "may not be specified when 'hostIPC' is true");
    }
  }
}

constexpr std::array<std::string_view, 11> kNotOnWindows = {
    "appArmorProfile",     "seLinuxOptions",
    "seccompProfile",      "fsGroup",
    "fsGroupChangePolicy", "sysctls",
    "runAsUser",           "runAsGroup",
    "supplementalGroups",  "supplementalGroupsPolicy",
    "seLinuxChangePolicy"};
constexpr std::array<std::string_view, 10> kNotInWindowsContainers = {"appArmorProfile",
                                                                      "seLinuxOptions",
                                                                      "seccompProfile",
                                                                      "capabilities",
                                                                      "readOnlyRootFilesystem",
                                                                      "privileged",
                                                                      "allowPrivilegeEscalation",
                                                                      "procMount",
                                                                      "runAsUser",
                                                                      "runAsGroup"};

template <size_t N>
void Refuse(const std::array<std::string_view, N>& keys, const Value& object, const Path& path,
            std::string_view why, FieldErrors& errors) {
  for (const std::string_view key : keys) {
    if (!object[key].IsNull()) errors.Forbidden(path.Child(key), why);
  }
}

}  // namespace

void ValidatePodSecurity(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& security = spec["securityContext"];
  const Path place = path.Child("securityContext");
  ValidateId(security["fsGroup"], place.Child("fsGroup"), errors);
  ValidateShared(security, place, errors);
  const Path groups = place.Child("supplementalGroups");
  for (size_t i = 0; i < security["supplementalGroups"].size(); ++i)
    ValidateId(security["supplementalGroups"].At(i), groups.Index(i), errors);
  if (spec["shareProcessNamespace"].AsBool() && spec["hostPID"].AsBool()) {
    errors.Invalid(place.Child("shareProcessNamespace"), true,
                   "ShareProcessNamespace and HostPID cannot both be enabled");
  }
  ValidateSysctls(spec, place.Child("sysctls"), errors);
  if (!security["fsGroupChangePolicy"].IsNull()) {
    errors.OneOf(place.Child("fsGroupChangePolicy"), security["fsGroupChangePolicy"],
                 {"Always", "OnRootMismatch"});
  }
}

void ValidateContainerSecurity(const Value& security, const Path& path, FieldErrors& errors) {
  ValidateShared(security, path, errors);
  const Value& escalation = security["allowPrivilegeEscalation"];
  if (escalation.IsNull() || escalation.AsBool()) return;
  if (security["privileged"].AsBool()) {
    errors.Invalid(path, security,
                   "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
  }
  for (const Value& capability : security["capabilities"]["add"].items()) {
    if (capability.AsString() != "CAP_SYS_ADMIN") continue;
    errors.Invalid(
        path, security,
        "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
  }
}

void ValidateOs(const Value& spec, const Path& path, FieldErrors& errors) {
  if (spec["os"].IsNull()) return;
  const Path os = path.Child("os");
  if (spec["os"]["name"].AsString().empty())
    return errors.Required(os.Child("name"), "cannot be empty");
  if (!errors.OneOf(os, spec["os"]["name"], {"linux", "windows"})) return;
  const bool windows = spec["os"]["name"].AsString() == "windows";
  constexpr std::array<std::string_view, 1> kWindowsOnly = {"windowsOptions"};
  constexpr std::array<std::string_view, 3> kHostKeys = {"hostPID", "hostIPC",
                                                         "shareProcessNamespace"};
  constexpr std::string_view kNoWindows = "cannot be set for a windows pod";
  constexpr std::string_view kNoLinux = "windows options cannot be set for a linux pod";
  const Path security = path.Child("securityContext");
  if (windows) {
    Refuse(kNotOnWindows, spec["securityContext"], security, kNoWindows, errors);
    Refuse(kHostKeys, spec, path, kNoWindows, errors);
  } else {
    Refuse(kWindowsOnly, spec["securityContext"], security, kNoLinux, errors);
  }
  for (const char* key : {"initContainers", "containers", "ephemeralContainers"}) {
    const Path list = path.Child(key);
    for (size_t i = 0; i < spec[key].size(); ++i) {
      const Value& context = spec[key].At(i)["securityContext"];
      const Path container = list.Index(i);
      const Path place = container.Child("securityContext");
      if (windows) Refuse(kNotInWindowsContainers, context, place, kNoWindows, errors);
      if (!windows) Refuse(kWindowsOnly, context, place, kNoLinux, errors);
    }
  }
}

}  // namespace muster::schema
