#include "agent/pod_workers/environment.h"

#include <algorithm>
#include <cctype>

#include "agent/pod_workers/field_values.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

// "my-service" -> "MY_SERVICE".
std::string VariableName(std::string_view name) {
  std::string out;
  for (char c : name) out.push_back(c == '-' || c == '.' ? '_' : static_cast<char>(toupper(c)));
  return out;
}

void AddService(const json::Value& service, EnvironmentMap& out) {
  const std::string address = service["spec"]["clusterIP"].Str();
  const json::Array& ports = service["spec"]["ports"].items();
  if (address.empty() || address == "None" || ports.empty()) return;
  const std::string name = VariableName(service["metadata"]["name"].AsString());
  out[name + "_SERVICE_HOST"] = address;
  bool first = true;
  for (const json::Value& port : ports) {
    const std::string number = std::to_string(port["port"].AsInt());
    const std::string protocol = port["protocol"].Str("TCP");
    const std::string url = fmt::format("{}://{}:{}", ToLower(protocol), address, number);
    if (first) {
      out[name + "_SERVICE_PORT"] = number;
      out[name + "_PORT"] = url;
    }
    first = false;
    if (const auto port_name = port["name"].AsString(); !port_name.empty()) {
      out[name + "_SERVICE_PORT_" + VariableName(port_name)] = number;
    }
    const std::string prefix = fmt::format("{}_PORT_{}_{}", name, number, protocol);
    out[prefix] = url;
    out[prefix + "_PROTO"] = ToLower(protocol);
    out[prefix + "_PORT"] = number;
    out[prefix + "_ADDR"] = address;
  }
}

// The text of a Secret's or ConfigMap's key; nullopt if it is not there.
std::optional<std::string> KeyOf(const json::Value& object, std::string_view key, bool is_secret) {
  if (const json::Value* value = object["data"].Find(key)) {
    return is_secret ? Base64Decode(value->AsString()) : value->Str();
  }
  if (const json::Value* value = object["stringData"].Find(key); is_secret && value != nullptr)
    return value->Str();
  return std::nullopt;
}

const json::Value* FindObject(const std::map<std::string, json::Value>& objects,
                              const std::string& name) {
  const auto found = objects.find(name);
  return found == objects.end() ? nullptr : &found->second;
}

Status AddEnvFrom(const json::Value& source, const PodInputs& inputs, EnvironmentMap& out) {
  for (const bool is_secret : {false, true}) {
    const json::Value& reference = source[is_secret ? "secretRef" : "configMapRef"];
    const std::string name = reference["name"].Str();
    if (name.empty()) continue;
    const json::Value* object = FindObject(is_secret ? inputs.secrets : inputs.config_maps, name);
    if (object == nullptr) {
      if (reference["optional"].AsBool()) continue;
      return Error(Reason::kNotFound, "{} {:?} not found", is_secret ? "secret" : "configmap",
                   name);
    }
    for (const json::Member& member : (*object)["data"].members()) {
      if (auto text = KeyOf(*object, member.first, is_secret))
        out[source["prefix"].Str() + member.first] = *text;
    }
  }
  return Status::Ok();
}

// nullopt: an optional reference that leads nowhere; the variable is then not set.
Result<std::optional<std::string>> FromKey(const json::Value& reference, const json::Value& pod,
                                           const PodInputs& inputs, bool is_secret) {
  const std::string name = reference["name"].Str();
  const std::string key = reference["key"].Str();
  const json::Value* object = FindObject(is_secret ? inputs.secrets : inputs.config_maps, name);
  const bool optional = reference["optional"].AsBool();
  if (object == nullptr) {
    if (optional) return std::optional<std::string>();
    return Error(Reason::kNotFound, "{} {:?} not found", is_secret ? "secret" : "configmap", name);
  }
  std::optional<std::string> value = KeyOf(*object, key, is_secret);
  if (value || optional) return value;
  return Error(Reason::kNotFound, "couldn't find key {} in {} {}/{}", key,
               is_secret ? "Secret" : "ConfigMap", pod["metadata"]["namespace"].AsString(), name);
}

Result<std::optional<std::string>> ValueFrom(const json::Value& from, const json::Value& pod,
                                             const json::Value& container, const PodInputs& inputs,
                                             const PodFacts& facts) {
  if (from.Has("configMapKeyRef")) return FromKey(from["configMapKeyRef"], pod, inputs, false);
  if (from.Has("secretKeyRef")) return FromKey(from["secretKeyRef"], pod, inputs, true);
  if (from.Has("fieldRef")) {
    ASSIGN_OR_RETURN(std::string value,
                     FieldValue(pod, from["fieldRef"]["fieldPath"].AsString(), facts));
    return std::optional<std::string>(std::move(value));
  }
  if (from.Has("resourceFieldRef")) {
    ASSIGN_OR_RETURN(std::string value,
                     ResourceValue(pod, container, from["resourceFieldRef"], facts));
    return std::optional<std::string>(std::move(value));
  }
  return std::optional<std::string>("");
}

}  // namespace

EnvironmentMap ServiceEnvironment(const std::vector<json::Value>& services, std::string_view ns,
                                  bool links) {
  EnvironmentMap out;
  for (const json::Value& service : services) {
    const std::string_view service_ns = service["metadata"]["namespace"].AsString();
    const bool is_api =
        service_ns == "default" && service["metadata"]["name"].AsString() == "kubernetes";
    if (is_api || (links && service_ns == ns)) AddService(service, out);
  }
  return out;
}

Result<EnvironmentMap> ContainerEnvironment(const json::Value& pod, const json::Value& container,
                                            const PodInputs& inputs, const PodFacts& facts) {
  const bool links = pod["spec"]["enableServiceLinks"].AsBool(true);
  const EnvironmentMap services =
      ServiceEnvironment(inputs.services, pod["metadata"]["namespace"].AsString(), links);
  EnvironmentMap own;
  for (const json::Value& source : container["envFrom"].items())
    RETURN_IF_ERROR(AddEnvFrom(source, inputs, own));
  EnvironmentMap known = services;
  for (const auto& [name, value] : own) known[name] = value;
  for (const json::Value& variable : container["env"].items()) {
    const std::string name = variable["name"].Str();
    std::string value = Expand(variable["value"].AsString(), known);
    if (value.empty() && variable.Has("valueFrom")) {
      ASSIGN_OR_RETURN(std::optional<std::string> found,
                       ValueFrom(variable["valueFrom"], pod, container, inputs, facts));
      if (!found) continue;
      value = std::move(*found);
    }
    known[name] = std::move(value);
  }
  return known;
}

std::vector<std::string> FinishEnvironment(EnvironmentMap variables, std::string_view hostname,
                                           const ImageConfig& image, std::string_view home) {
  for (const std::string& entry : image.environment) {
    const size_t equals = std::min(entry.find('='), entry.size());
    const std::string value = equals < entry.size() ? entry.substr(equals + 1) : "";
    if (equals > 0) variables.try_emplace(entry.substr(0, equals), value);
  }
  variables.try_emplace("PATH", kDefaultPath);
  variables.try_emplace("HOSTNAME", hostname);
  if (!home.empty()) variables.try_emplace("HOME", home);
  std::vector<std::string> out;
  for (const auto& [name, value] : variables) out.push_back(name + "=" + value);
  return out;
}

std::vector<std::string> ContainerArguments(const json::Value& container,
                                            const EnvironmentMap& variables,
                                            const ImageConfig& image) {
  const bool has_command = !container["command"].empty();
  const bool has_args = !container["args"].empty();
  std::vector<std::string> out;
  if (!has_command) out = image.entrypoint;
  for (const char* field : {"command", "args"}) {
    for (const json::Value& word : container[field].items())
      out.push_back(Expand(word.AsString(), variables));
  }
  if (!has_command && !has_args) out.insert(out.end(), image.cmd.begin(), image.cmd.end());
  return out;
}

}  // namespace muster::agent
