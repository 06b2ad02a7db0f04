// Environment, probes and handlers of containers: k8s.io/kubernetes pkg/apis/core/validation.

#include <algorithm>
#include <array>

#include "schema/validation/pod_parts.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr std::array<const char*, 4> kSources = {"fieldRef", "resourceFieldRef", "configMapKeyRef",
                                                 "secretKeyRef"};
constexpr std::array<const char*, 5> kHandlers = {"exec", "httpGet", "tcpSocket", "grpc", "sleep"};

void ValidateKeyRef(const Value& reference, const Path& path, FieldErrors& errors) {
  errors.Check(CheckDns1123Subdomain, path.Child("name"), reference["name"].AsString());
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
    if (set == 0) errors.Invalid(path, "", "must specify one of: `configMapRef` or `secretRef`");
    if (set > 1) errors.Invalid(path, "", "may not have more than one field specified at a time");
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
  for (const Value& header : get["httpHeaders"].items())
    errors.Check(CheckHttpHeaderName, path.Child("httpHeaders"), header["name"].AsString());
}

// One handler alone.
void ValidateAction(std::string_view which, const Value& action, const Path& path,
                    int64_t grace_seconds, FieldErrors& errors) {
  if (which == "exec") {
    if (action["command"].empty()) errors.Required(path.Child("command"));
  } else if (which == "httpGet") {
    ValidateHttpGet(action, path, errors);
  } else if (which == "tcpSocket") {
    ValidatePortNumberOrName(action["port"], path.Child("port"), errors);
  } else if (which == "grpc") {
    errors.Port(path.Child("port"), action["port"]);
  } else if (const int64_t seconds = action["seconds"].AsInt();
             seconds <= 0 || seconds > grace_seconds) {
    errors.Invalid(path, seconds,
                   fmt::format("must be greater than 0 and less than terminationGracePeriodSeconds "
                               "({}). Enable AllowPodLifecycleSleepActionZeroValue feature gate "
                               "for zero sleep.",
                               grace_seconds));
  }
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

// Source: supportedStopSignalsLinux and ...Windows in k8s.io/kubernetes pkg/apis/core/validation.
void ValidateStopSignal(const Value& signal, const std::string& os, const Path& path,
                        FieldErrors& errors) {
  static const std::vector<std::string_view> kOnWindows = {"SIGKILL", "SIGTERM"};
  static const std::vector<std::string_view> kOnLinux = {
      "SIGABRT",     "SIGALRM",     "SIGBUS",      "SIGCHLD",     "SIGCLD",      "SIGCONT",
      "SIGFPE",      "SIGHUP",      "SIGILL",      "SIGINT",      "SIGIO",       "SIGIOT",
      "SIGKILL",     "SIGPIPE",     "SIGPOLL",     "SIGPROF",     "SIGPWR",      "SIGQUIT",
      "SIGRTMAX",    "SIGRTMAX-1",  "SIGRTMAX-10", "SIGRTMAX-11", "SIGRTMAX-12", "SIGRTMAX-13",
      "SIGRTMAX-14", "SIGRTMAX-2",  "SIGRTMAX-3",  "SIGRTMAX-4",  "SIGRTMAX-5",  "SIGRTMAX-6",
      "SIGRTMAX-7",  "SIGRTMAX-8",  "SIGRTMAX-9",  "SIGRTMIN",    "SIGRTMIN+1",  "SIGRTMIN+10",
      "SIGRTMIN+11", "SIGRTMIN+12", "SIGRTMIN+13", "SIGRTMIN+14", "SIGRTMIN+15", "SIGRTMIN+2",
      "SIGRTMIN+3",  "SIGRTMIN+4",  "SIGRTMIN+5",  "SIGRTMIN+6",  "SIGRTMIN+7",  "SIGRTMIN+8",
      "SIGRTMIN+9",  "SIGSEGV",     "SIGSTKFLT",   "SIGSTOP",     "SIGSYS",      "SIGTERM",
      "SIGTRAP",     "SIGTSTP",     "SIGTTIN",     "SIGTTOU",     "SIGURG",      "SIGUSR1",
      "SIGUSR2",     "SIGVTALRM",   "SIGWINCH",    "SIGXCPU",     "SIGXFSZ"};
  if (os.empty()) {
    return errors.Forbidden(path, "may not be set for containers with empty `spec.os.name`");
  }
  const auto& supported = os == "windows" ? kOnWindows : kOnLinux;
  if (std::find(supported.begin(), supported.end(), signal.AsString()) == supported.end())
    errors.NotSupported(path, signal, supported);
}

void ValidateHandler(const Value& handler, const Path& path, int64_t grace_seconds,
                     FieldErrors& errors) {
  int set = 0;
  for (const char* key : kHandlers) {
    if (handler[key].IsNull()) continue;
    if (++set > 1) {
      errors.Forbidden(path.Child(key), "may not specify more than 1 handler type");
    } else {
      ValidateAction(key, handler[key], path.Child(key), grace_seconds, errors);
    }
  }
  if (set == 0) errors.Required(path, "must specify a handler type");
}

void ValidateProbe(const Value& probe, std::string_view which, const Path& path,
                   FieldErrors& errors) {
  ValidateHandler(probe, path, 0, errors);
  for (const char* key : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                          "successThreshold", "failureThreshold"}) {
    errors.NotNegative(path.Child(key), probe[key]);
  }
  const bool readiness = which == "readinessProbe";
  if (!readiness && probe["successThreshold"].AsInt() != 1) {
    errors.Invalid(path.Child("successThreshold"), probe["successThreshold"], "must be 1");
  }
  const Value& grace = probe["terminationGracePeriodSeconds"];
  const Path grace_path = path.Child("terminationGracePeriodSeconds");
  if (!grace.IsNull() && grace.AsInt() <= 0)
    errors.Invalid(grace_path, grace, "must be greater than 0");
  if (!grace.IsNull() && readiness)
    errors.Invalid(grace_path, grace, "must not be set for readinessProbes");
}

}  // namespace muster::schema
