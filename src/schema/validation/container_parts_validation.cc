// Environment, probes and handlers of containers: k8s.io/kubernetes pkg/apis/core/validation.

#include <algorithm>
#include <array>

#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr std::array<const char*, 4> kSources = {"fieldRef", "resourceFieldRef", "configMapKeyRef",
                                                 "secretKeyRef"};
constexpr std::array<const char*, 4> kHandlers = {"exec", "httpGet", "tcpSocket", "grpc"};

void ValidateKeyRef(const Value& reference, const Path& path, FieldErrors& errors) {
  if (!reference["name"].AsString().empty())
    errors.Check(CheckDns1123Subdomain, path.Child("name"), reference["name"]);
  if (reference["key"].AsString().empty()) {
    errors.Required(path.Child("key"));
  } else {
    errors.Check(CheckConfigKey, path.Child("key"), reference["key"]);
  }
}

void ValidateValueFrom(const Value& variable, const Path& path, FieldErrors& errors) {
  const Value& source = variable["valueFrom"];
  const auto set = std::count_if(kSources.begin(), kSources.end(),
                                 [&](const char* key) { return !source[key].IsNull(); });
  if (set == 0) {
    errors.Invalid(
        path, "",
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`");
  } else if (!variable["value"].AsString().empty()) {
    errors.Invalid(path, "", "may not be specified when `value` is not empty");
  } else if (set > 1) {
    errors.Invalid(path, "", "may not have more than one field specified at a time");
  }
  if (!source["fieldRef"].IsNull())
    ValidateFieldRef(source["fieldRef"], path.Child("fieldRef"), false, errors);
  if (!source["resourceFieldRef"].IsNull()) {
    ValidateResourceFieldRef(source["resourceFieldRef"], path.Child("resourceFieldRef"), false,
                             errors);
  }
  for (const char* key : {"configMapKeyRef", "secretKeyRef"}) {
    if (!source[key].IsNull()) ValidateKeyRef(source[key], path.Child(key), errors);
  }
}

void ValidateEnvFrom(const Value& sources, const Path& path, FieldErrors& errors) {
  for (size_t i = 0; i < sources.size(); ++i) {
    const Value& source = sources.At(i);
    const Path place = path.Index(i);
    if (!source["prefix"].AsString().empty())
      errors.Check(CheckEnvName, place.Child("prefix"), source["prefix"]);
    const int set =
        (source["configMapRef"].IsNull() ? 0 : 1) + (source["secretRef"].IsNull() ? 0 : 1);
    if (set == 0) errors.Invalid(place, "", "must specify one of: `configMapRef` or `secretRef`");
    if (set > 1) errors.Invalid(place, "", "may not have more than one field specified at a time");
    for (const char* key : {"configMapRef", "secretRef"}) {
      if (source[key].IsNull()) continue;
      const Path reference = place.Child(key);
      if (source[key]["name"].AsString().empty()) {
        errors.Required(reference.Child("name"));
      } else {
        errors.Check(CheckDns1123Subdomain, reference.Child("name"), source[key]["name"]);
      }
    }
  }
}

// A port by number or by the name of a container's port.
void ValidatePortNumberOrName(const Value& port, const Path& path, FieldErrors& errors) {
  if (port.IsString()) {
    errors.Check(CheckPortName, path, port);
  } else {
    errors.Port(path, port);
  }
}

void ValidateHttpGet(const Value& get, const Path& path, FieldErrors& errors) {
  if (get["path"].AsString().empty()) errors.Required(path.Child("path"));
  ValidatePortNumberOrName(get["port"], path.Child("port"), errors);
  errors.OneOf(path.Child("scheme"), get["scheme"], {"HTTP", "HTTPS"});
}

}  // namespace

void ValidateEnv(const Value& container, const Path& path, FieldErrors& errors) {
  const Path list = path.Child("env");
  for (size_t i = 0; i < container["env"].size(); ++i) {
    const Value& variable = container["env"].At(i);
    const Path place = list.Index(i);
    if (variable["name"].AsString().empty()) {
      errors.Required(place.Child("name"));
    } else {
      errors.Check(CheckEnvName, place.Child("name"), variable["name"]);
    }
    if (!variable["valueFrom"].IsNull())
      ValidateValueFrom(variable, place.Child("valueFrom"), errors);
  }
  ValidateEnvFrom(container["envFrom"], path.Child("envFrom"), errors);
}

void ValidateHandler(const Value& handler, const Path& path, FieldErrors& errors) {
  int set = 0;
  for (const char* key : kHandlers) {
    if (handler[key].IsNull()) continue;
    if (++set > 1) errors.Forbidden(path.Child(key), "may not specify more than 1 handler type");
  }
  if (!handler["sleep"].IsNull()) {
    ++set;
    const Path sleep = path.Child("sleep");
    errors.NotNegative(sleep.Child("seconds"), handler["sleep"]["seconds"]);
  }
  if (set == 0) errors.Required(path, "must specify a handler type");
  if (!handler["exec"].IsNull() && handler["exec"]["command"].empty()) {
    const Path exec = path.Child("exec");
    errors.Required(exec.Child("command"));
  }
  if (!handler["httpGet"].IsNull())
    ValidateHttpGet(handler["httpGet"], path.Child("httpGet"), errors);
  if (!handler["tcpSocket"].IsNull()) {
    const Path socket = path.Child("tcpSocket");
    ValidatePortNumberOrName(handler["tcpSocket"]["port"], socket.Child("port"), errors);
  }
  if (!handler["grpc"].IsNull()) {
    const Path grpc = path.Child("grpc");
    errors.Port(grpc.Child("port"), handler["grpc"]["port"]);
  }
}

void ValidateProbe(const Value& probe, const Path& path, bool must_succeed_once,
                   FieldErrors& errors) {
  ValidateHandler(probe, path, errors);
  for (const char* key : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                          "successThreshold", "failureThreshold"}) {
    errors.NotNegative(path.Child(key), probe[key]);
  }
  if (must_succeed_once && probe["successThreshold"].AsInt() != 1) {
    errors.Invalid(path.Child("successThreshold"), probe["successThreshold"], "must be 1");
  }
  const Value& grace = probe["terminationGracePeriodSeconds"];
  if (!grace.IsNull() && grace.AsInt() <= 0) {
    errors.Invalid(path.Child("terminationGracePeriodSeconds"), grace, "must be greater than 0");
  }
}

}  // namespace muster::schema
