// k8s.io/kubernetes pkg/apis/core/v1/defaults.go, as far as it concerns pods. What admission adds
// there (tolerations for lost nodes, priority, service account) is the API server's.

#include "schema/defaulting.h"
#include "schema/defaulting/edit.h"
#include "schema/defaulting/kind_defaults.h"

namespace muster::schema {
namespace {

using json::Obj;
using json::Value;

constexpr int kDefaultGracePeriodSeconds = 30;
constexpr int kDefaultFileMode = 0644;
constexpr int kDefaultTokenSeconds = 3600;

// The tag of an image reference; "latest" when there is neither tag nor digest.
std::string_view ImageTag(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return "";
  const size_t slash = image.rfind('/');
  const size_t colon = image.rfind(':');
  const bool has_tag =
      colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
  return has_tag ? image.substr(colon + 1) : "latest";
}

Value DefaultHttpGet(Value action) {
  SetDefault(action, "path", "/");
  SetDefault(action, "scheme", "HTTP");
  return action;
}

Value DefaultProbe(Value probe) {
  SetDefaultNumber(probe, "timeoutSeconds", 1);
  SetDefaultNumber(probe, "periodSeconds", 10);
  SetDefaultNumber(probe, "successThreshold", 1);
  SetDefaultNumber(probe, "failureThreshold", 3);
  EditMember(probe, "httpGet", DefaultHttpGet);
  EditMember(probe, "grpc", [](Value grpc) {
    if (!grpc.Has("service")) grpc = std::move(grpc).Set("service", "");
    return grpc;
  });
  return probe;
}

// What is limited and not requested is requested in full.
Value RequestLimits(Value resources) {
  Value requests = resources["requests"];
  const size_t before = requests.size();
  for (const auto& [name, amount] : resources["limits"].members()) {
    if (!requests.Has(name)) requests = std::move(requests).Set(name, amount);
  }
  if (requests.size() > before)
    resources = std::move(resources).Set("requests", std::move(requests));
  return resources;
}

Value DefaultHook(Value hook) {
  EditMember(hook, "httpGet", DefaultHttpGet);
  return hook;
}

Value DefaultContainer(Value container) {
  if (!container.Has("resources")) container = std::move(container).Set("resources", Obj());
  SetDefault(container, "terminationMessagePath", "/dev/termination-log");
  SetDefault(container, "terminationMessagePolicy", "File");
  SetDefault(container, "imagePullPolicy",
             ImageTag(container["image"].AsString()) == "latest" ? "Always" : "IfNotPresent");
  EditItems(container, "ports", [](Value port) {
    SetDefault(port, "protocol", "TCP");
    return port;
  });
  EditItems(container, "env", [](Value variable) {
    EditMember(variable, "valueFrom", [](Value source) {
      EditMember(source, "fieldRef", [](Value reference) {
        SetDefault(reference, "apiVersion", "v1");
        return reference;
      });
      return source;
    });
    return variable;
  });
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"})
    EditMember(container, probe, DefaultProbe);
  EditMember(container, "lifecycle", [](Value lifecycle) {
    for (const char* hook : {"postStart", "preStop"}) EditMember(lifecycle, hook, DefaultHook);
    return lifecycle;
  });
  return container;
}

Value DefaultMode(Value source) {
  if (!source.Has("defaultMode")) source = std::move(source).Set("defaultMode", kDefaultFileMode);
  return source;
}

Value DefaultDownwardItems(Value source) {
  EditItems(source, "items", [](Value item) {
    EditMember(item, "fieldRef", [](Value reference) {
      SetDefault(reference, "apiVersion", "v1");
      return reference;
    });
    return item;
  });
  return source;
}

Value DefaultVolume(Value volume) {
  if (volume.size() <= (volume.Has("name") ? 1u : 0u))
    return std::move(volume).Set("emptyDir", Obj());
  for (const char* source : {"configMap", "secret", "downwardAPI", "projected"})
    EditMember(volume, source, DefaultMode);
  EditMember(volume, "downwardAPI", DefaultDownwardItems);
  EditMember(volume, "hostPath", [](Value source) {
    if (!source.Has("type")) source = std::move(source).Set("type", "");
    return source;
  });
  EditMember(volume, "projected", [](Value projected) {
    EditItems(projected, "sources", [](Value source) {
      EditMember(source, "downwardAPI", DefaultDownwardItems);
      EditMember(source, "serviceAccountToken", [](Value token) {
        SetDefaultNumber(token, "expirationSeconds", kDefaultTokenSeconds);
        return token;
      });
      return source;
    });
    return projected;
  });
  EditMember(volume, "ephemeral", [](Value ephemeral) {
    EditMember(ephemeral, "volumeClaimTemplate", [](Value claim) {
      EditMember(claim, "spec", DefaultPersistentVolumeClaimSpec);
      return claim;
    });
    return ephemeral;
  });
  return volume;
}

// What a template leaves open until a pod is made of it.
Value DefaultContainerOfPod(Value container, bool host_network) {
  EditMember(container, "resources", RequestLimits);
  if (!host_network) return container;
  EditItems(container, "ports", [](Value port) {
    SetDefaultNumber(port, "hostPort", port["containerPort"].AsInt());
    return port;
  });
  return container;
}

}  // namespace

Value DefaultPodSpec(Value spec) {
  EditItems(spec, "volumes", DefaultVolume);
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"})
    EditItems(spec, list, DefaultContainer);
  SetDefault(spec, "restartPolicy", "Always");
  if (!spec.Has("terminationGracePeriodSeconds")) {
    spec = std::move(spec).Set("terminationGracePeriodSeconds", kDefaultGracePeriodSeconds);
  }
  SetDefault(spec, "dnsPolicy", "ClusterFirst");
  // The deprecated name of the field goes along with it.
  const Value account =
      IsUnset(spec["serviceAccountName"]) ? spec["serviceAccount"] : spec["serviceAccountName"];
  if (!IsUnset(account)) {
    SetDefault(spec, "serviceAccountName", account);
    if (!(spec["serviceAccount"] == account)) spec = std::move(spec).Set("serviceAccount", account);
  }
  if (!spec.Has("securityContext")) spec = std::move(spec).Set("securityContext", Obj());
  SetDefault(spec, "schedulerName", "default-scheduler");
  return spec;
}

Value DefaultPod(Value pod) {
  Value spec = DefaultPodSpec(pod["spec"]);
  const bool host_network = spec["hostNetwork"].AsBool();
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    EditItems(spec, list, [&](const Value& container) {
      return DefaultContainerOfPod(container, host_network);
    });
  }
  if (!spec.Has("enableServiceLinks")) spec = std::move(spec).Set("enableServiceLinks", true);
  EditMember(spec, "resources", RequestLimits);
  if (!spec.SameAs(pod["spec"])) pod = std::move(pod).Set("spec", std::move(spec));
  return pod;
}

}  // namespace muster::schema
