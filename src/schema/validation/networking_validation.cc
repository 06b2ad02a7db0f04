// Ingress and IngressClass: k8s.io/kubernetes pkg/apis/networking/validation.

#include <array>

#include "schema/validation/kind_validation.h"

namespace muster::schema {
namespace {

using json::Value;

constexpr size_t kMaxControllerBytes = 250;
constexpr std::string_view kClassAnnotation = "kubernetes.io/ingress.class";

void CheckWildcardSubdomain(std::string_view text, Problems& problems) {
  Problems of_rest;
  if (text.starts_with("*.")) CheckDns1123Subdomain(text.substr(2), of_rest);
  if (text.starts_with("*.") && of_rest.empty()) return;
  problems.emplace_back(
      "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, "
      "which "
      "must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric "
      "character (e.g. '*.example.com', regex used for validation is "
      "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
}

void ValidateHost(const Value& host, const Path& path, FieldErrors& errors) {
  const bool wildcard = host.AsString().find('*') != std::string_view::npos;
  errors.Check(wildcard ? CheckWildcardSubdomain : CheckDns1123Subdomain, path, host);
}

// Something else in the cluster, by kind and name.
void ValidateReference(const Value& reference, const Path& path, FieldErrors& errors) {
  if (!reference["apiGroup"].IsNull())
    errors.Check(CheckDns1123Subdomain, path.Child("apiGroup"), reference["apiGroup"]);
  for (const char* key : {"kind", "name"}) {
    if (reference[key].AsString().empty()) {
      errors.Required(path.Child(key));
    } else {
      errors.Check(CheckPathSegment, path.Child(key), reference[key]);
    }
  }
}

void ValidateServiceBackend(const Value& service, const Path& backend, FieldErrors& errors) {
  const Path path = backend.Child("service");
  if (service["name"].AsString().empty()) {
    errors.Required(path.Child("name"));
  } else {
    errors.Check(CheckDns1035Label, path.Child("name"), service["name"]);
  }
  const Value& name = service["port"]["name"];
  const Value& number = service["port"]["number"];
  const bool has_name = !name.AsString().empty();
  const bool has_number = number.AsInt() != 0;
  const Path port = path.Child("port");
  if (has_name && has_number) {
    errors.Invalid(backend, "", "cannot set both port name & port number");
  } else if (has_name) {
    errors.Check(CheckPortName, port.Child("name"), name);
  } else if (has_number) {
    errors.Port(port.Child("number"), number);
  } else {
    errors.Required(backend, "port name or number is required");
  }
}

void ValidateBackend(const Value& backend, const Path& path, FieldErrors& errors) {
  const Value& service = backend["service"];
  const Value& resource = backend["resource"];
  if (!service.IsNull() && !resource.IsNull())
    return errors.Invalid(path, "", "cannot set both resource and service backends");
  if (!resource.IsNull()) return ValidateReference(resource, path.Child("resource"), errors);
  if (!service.IsNull()) return ValidateServiceBackend(service, path, errors);
  errors.Invalid(path, "", "resource or service backend is required");
}

void ValidateExactPath(const Value& text, const Path& path, FieldErrors& errors) {
  constexpr std::array<std::string_view, 5> kNowhere = {"//", "/./", "/../", "%2f", "%2F"};
  constexpr std::array<std::string_view, 2> kNotLast = {"/..", "/."};
  for (const std::string_view part : kNowhere) {
    if (text.AsString().find(part) != std::string_view::npos)
      errors.Invalid(path, text, fmt::format("must not contain '{}'", part));
  }
  for (const std::string_view part : kNotLast) {
    if (text.AsString().ends_with(part))
      errors.Invalid(path, text, fmt::format("cannot end with '{}'", part));
  }
}

void ValidateHttpPath(const Value& http_path, const Path& path, FieldErrors& errors) {
  const Value& type = http_path["pathType"];
  if (type.IsNull()) return errors.Required(path.Child("pathType"), "pathType must be specified");
  const Value text(http_path["path"].AsString());
  const bool absolute = text.AsString().starts_with('/');
  const bool specific = type.AsString() == "ImplementationSpecific";
  const bool known =
      errors.OneOf(path.Child("pathType"), type, {"Exact", "ImplementationSpecific", "Prefix"});
  if (known && !absolute && !(specific && text.AsString().empty()))
    errors.Invalid(path.Child("path"), text, "must be an absolute path");
  if (known && !specific) ValidateExactPath(text, path.Child("path"), errors);
  ValidateBackend(http_path["backend"], path.Child("backend"), errors);
}

void ValidateIngressRule(const Value& rule, const Path& path, FieldErrors& errors) {
  if (const Value& host = rule["host"]; !host.AsString().empty()) {
    if (IsIp(host.AsString()))
      errors.Invalid(path.Child("host"), host, "must be a DNS name, not an IP address");
    ValidateHost(host, path.Child("host"), errors);
  }
  const Value& http = rule["http"];
  if (http.IsNull()) return;
  const Path http_path = path.Child("http");
  const Path list = http_path.Child("paths");
  if (http["paths"].empty()) errors.Required(list);
  for (size_t i = 0; i < http["paths"].size(); ++i)
    ValidateHttpPath(http["paths"].At(i), list.Index(i), errors);
}

void ValidateTls(const Value& tls, const Path& path, FieldErrors& errors) {
  const Path hosts = path.Child("hosts");
  for (size_t i = 0; i < tls["hosts"].size(); ++i)
    ValidateHost(tls["hosts"].At(i), hosts.Index(i), errors);
  if (!tls["secretName"].AsString().empty())
    errors.Check(CheckDns1123Subdomain, path.Child("secretName"), tls["secretName"]);
}

bool IsHttpPath(std::string_view text) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-._~%!$&'()*+,;=:";
  return text.find_first_not_of(kAllowed) == std::string_view::npos;
}

void ValidateController(const Value& controller, const Path& path, FieldErrors& errors) {
  const std::string_view text = controller.AsString();
  if (text.empty()) return errors.Required(path);
  if (text.size() > kMaxControllerBytes) errors.TooLong(path, kMaxControllerBytes);
  const size_t slash = text.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == text.size()) {
    return errors.Invalid(path, controller,
                          "must be a domain-prefixed path (such as \"acme.io/foo\")");
  }
  errors.Check(CheckDns1123Subdomain, path, text.substr(0, slash));
  if (!IsHttpPath(text.substr(slash + 1))) {
    errors.Invalid(path, text.substr(slash + 1),
                   "Invalid path (regex used for validation is "
                   "'[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')");
  }
}

void ValidateParameters(const Value& parameters, const Path& path, FieldErrors& errors) {
  if (parameters.IsNull()) return;
  ValidateReference(parameters, path, errors);
  const std::string_view scope = parameters["scope"].AsString();
  if (!errors.OneOf(path.Child("scope"), parameters["scope"], {"Cluster", "Namespace"})) return;
  const Value& ns = parameters["namespace"];
  const Path place = path.Child("namespace");
  if (scope == "Cluster" && !ns.IsNull())
    errors.Forbidden(place, "`parameters.scope` is set to 'Cluster'");
  if (scope != "Namespace") return;
  if (ns.IsNull()) return errors.Required(place, "`parameters.scope` is set to 'Namespace'");
  errors.Check(CheckDns1123Label, place, ns);
}

}  // namespace

void ValidateIngress(const Value& ingress, FieldErrors& errors) {
  const Value& spec = ingress["spec"];
  const Path path("spec");
  if (spec["rules"].empty() && spec["defaultBackend"].IsNull()) {
    errors.Invalid(path, spec["rules"].IsNull() ? json::List() : spec["rules"],
                   "either `defaultBackend` or `rules` must be specified");
  }
  if (!spec["defaultBackend"].IsNull())
    ValidateBackend(spec["defaultBackend"], path.Child("defaultBackend"), errors);
  const Path rules = path.Child("rules");
  for (size_t i = 0; i < spec["rules"].size(); ++i)
    ValidateIngressRule(spec["rules"].At(i), rules.Index(i), errors);
  const Path tls = path.Child("tls");
  for (size_t i = 0; i < spec["tls"].size(); ++i)
    ValidateTls(spec["tls"].At(i), tls.Index(i), errors);
  if (!spec["ingressClassName"].IsNull())
    errors.Check(CheckDns1123Subdomain, path.Child("ingressClassName"), spec["ingressClassName"]);
}

void ValidateIngressCreate(const Value& ingress, FieldErrors& errors) {
  const Value& annotation = ingress["metadata"]["annotations"][kClassAnnotation];
  const Value& name = ingress["spec"]["ingressClassName"];
  if (annotation.IsNull() || name.IsNull() || annotation == name) return;
  const Path annotations("annotations");
  errors.Invalid(annotations.Child(kClassAnnotation), annotation,
                 "must match `ingressClassName` when both are specified");
}

void ValidateIngressStatusUpdate(const Value&, const Value& after, FieldErrors& errors) {
  const Path status("status");
  const Path balancer = status.Child("loadBalancer");
  const Path list = balancer.Child("ingress");
  const Value& points = after["status"]["loadBalancer"]["ingress"];
  for (size_t i = 0; i < points.size(); ++i) {
    const Path place = list.Index(i);
    const Value& ip = points.At(i)["ip"];
    const Value& host = points.At(i)["hostname"];
    if (!ip.AsString().empty()) errors.Check(CheckIp, place.Child("ip"), ip);
    if (host.AsString().empty()) continue;
    errors.Check(CheckDns1123Subdomain, place.Child("hostname"), host);
    if (IsIp(host.AsString()))
      errors.Invalid(place.Child("hostname"), host, "must be a DNS name, not an IP address");
  }
}

void ValidateIngressClass(const Value& ingress_class, FieldErrors& errors) {
  const Path path("spec");
  ValidateController(ingress_class["spec"]["controller"], path.Child("controller"), errors);
  ValidateParameters(ingress_class["spec"]["parameters"], path.Child("parameters"), errors);
}

void ValidateIngressClassUpdate(const Value& before, const Value& after, FieldErrors& errors) {
  const Path path("spec");
  if (!(before["spec"]["controller"] == after["spec"]["controller"]))
    errors.Invalid(path.Child("controller"), after["spec"]["controller"], kImmutable);
}

}  // namespace muster::schema
