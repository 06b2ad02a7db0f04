#include "cli/describe_text.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include <fmt/core.h>

#include "base/strings.h"
#include "cli/table_printer.h"
#include "schema/training_kinds.h"

namespace muster::cli {
namespace {

using json::Value;

constexpr size_t kKeyWidth = 18;
constexpr int kMaxTreeDepth = 64;

// How wide a key is with the space after it: values below each other begin in the same column.
size_t KeyWidth(int indent) { return indent == 0 ? kKeyWidth : kKeyWidth - 2; }

std::string Line(int indent, std::string_view key, std::string_view value) {
  std::string out(static_cast<size_t>(indent), ' ');
  out += key;
  out += ':';
  if (!value.empty()) {
    const size_t used = key.size() + 1;
    const size_t width = KeyWidth(indent);
    out.append(used < width ? width - used : 1, ' ');
    out += value;
  }
  return out + "\n";
}

std::string Scalar(const Value& value) {
  if (value.IsString()) return value.Str();
  if (value.IsNumber()) return std::string(value.NumberToken());
  if (value.IsBool()) return value.AsBool() ? "true" : "false";
  return "<none>";
}

// "a=1" lines, the first beside the key.
std::string Map(int indent, std::string_view key, const Value& map, std::string_view separator) {
  if (map.empty()) return Line(indent, key, "<none>");
  std::string out;
  for (const auto& [name, value] : map.members()) {
    if (name == "kubectl.kubernetes.io/last-applied-configuration") continue;
    const std::string text = name + std::string(separator) + Scalar(value);
    out += out.empty()
               ? Line(indent, key, text)
               : std::string(static_cast<size_t>(indent) + KeyWidth(indent), ' ') + text + "\n";
  }
  return out.empty() ? Line(indent, key, "<none>") : out;
}

// "restartPolicy" -> "Restart Policy".
std::string Title(const std::string& field) {
  std::string out;
  for (size_t i = 0; i < field.size(); ++i) {
    const auto c = static_cast<unsigned char>(field[i]);
    const bool starts_word = i > 0 && std::isupper(c) != 0 &&
                             std::islower(static_cast<unsigned char>(field[i - 1])) != 0;
    if (starts_word) out += ' ';
    out += static_cast<char>(i == 0 ? std::toupper(c) : c);
  }
  return out;
}

// Whether the keys below this field are the user's names, which stay as they are, and no fields.
bool HoldsNames(std::string_view field) {
  constexpr std::string_view kFields[] = {"allocatable", "annotations",  "binaryData",   "capacity",
                                          "data",        "hard",         "labels",       "limits",
                                          "matchLabels", "minResources", "nodeSelector", "requests",
                                          "selector",    "stringData",   "used"};
  return std::ranges::find(kFields, field) != std::end(kFields);
}

std::string Tree(const Value& value, int indent, int depth = 0, bool names = false) {
  std::string out;
  if (depth > kMaxTreeDepth) return out;
  for (const auto& [key, member] : value.members()) {
    if (key == "managedFields") continue;
    const std::string title = names ? key : Title(key);
    if (member.IsObject()) {
      out += Line(indent, title, member.empty() ? "<none>" : "") +
             Tree(member, indent + 2, depth + 1, HoldsNames(key));
    } else if (member.IsArray()) {
      out += Line(indent, title, member.empty() ? "<none>" : "");
      for (const Value& item : member.items()) {
        if (!item.IsObject() && !item.IsArray()) {
          out += std::string(static_cast<size_t>(indent) + 2, ' ') + Scalar(item) + "\n";
          continue;
        }
        std::string block = Tree(item, indent + 4, depth + 1);
        if (block.size() > static_cast<size_t>(indent) + 2)
          block[static_cast<size_t>(indent) + 2] = '-';
        out += block;
      }
    } else {
      out += Line(indent, title, Scalar(member));
    }
  }
  return out;
}

// A field whose keys are names.
std::string Named(std::string_view title, const Value& map) {
  return Line(0, title, map.empty() ? "<none>" : "") + Tree(map, 2, 0, true);
}

std::string Header(const Value& object) {
  const Value& metadata = object["metadata"];
  std::string out = Line(0, "Name", metadata["name"].AsString());
  if (!metadata["namespace"].AsString().empty())
    out += Line(0, "Namespace", metadata["namespace"].AsString());
  out += Map(0, "Labels", metadata["labels"], "=");
  out += Map(0, "Annotations", metadata["annotations"], ": ");
  return out;
}

std::string Age(const Value& time, Time now) {
  const std::optional<Time> then = ParseTime(time.AsString());
  return then ? HumanDuration(now - *then) : "<unknown>";
}

std::string Conditions(const Value& conditions, Time now) {
  if (conditions.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"  Type", "Status", "Since", "Reason", "Message"}};
  for (const Value& condition : conditions.items()) {
    rows.push_back({"  " + condition["type"].Str(), condition["status"].Str(),
                    Age(condition["lastTransitionTime"], now), condition["reason"].Str(),
                    condition["message"].Str()});
  }
  return "Conditions:\n" + FormatColumns(rows);
}

std::string State(int indent, std::string_view key, const Value& state) {
  for (const char* kind : {"running", "waiting", "terminated"}) {
    if (!state.Has(kind)) continue;
    const Value& detail = state[kind];
    std::string out = Line(indent, key, Title(kind));
    for (const auto& [field, value] : detail.members()) {
      if (field != "containerID") out += Line(indent + 2, Title(field), Scalar(value));
    }
    return out;
  }
  return "";
}

const Value& FindByName(const Value& list, const Value& name) {
  static const Value kNull;
  for (const Value& item : list.items()) {
    if (item["name"] == name) return item;
  }
  return kNull;
}

std::string Environment(const Value& env) {
  if (env.empty()) return "";
  std::string out = Line(4, "Environment", "");
  for (const Value& variable : env.items()) {
    const bool from = variable.Has("valueFrom");
    out += Line(6, variable["name"].AsString(),
                from ? "<set from another object>" : Scalar(variable["value"]));
  }
  return out;
}

std::string Containers(std::string_view title, const Value& containers, const Value& statuses) {
  if (containers.empty()) return "";
  std::string out = Line(0, title, "");
  for (const Value& container : containers.items()) {
    const Value& status = FindByName(statuses, container["name"]);
    out += Line(2, container["name"].AsString(), "");
    out += Line(4, "Image", container["image"].AsString());
    for (const char* field : {"command", "args"}) {
      if (!container[field].empty())
        out += Line(4, Title(field), Join(json::ToStrings(container[field]), " "));
    }
    if (!status.IsNull()) {
      out += State(4, "State", status["state"]) + State(4, "Last State", status["lastState"]);
      out += Line(4, "Ready", status["ready"].AsBool() ? "True" : "False");
      out += Line(4, "Restart Count", Scalar(status["restartCount"]));
    }
    for (const char* field : {"limits", "requests"}) {
      const Value& amounts = container["resources"][field];
      if (!amounts.empty()) out += Map(4, Title(field), amounts, ": ");
    }
    out += Environment(container["env"]);
    for (const Value& mount : container["volumeMounts"].items()) {
      out +=
          Line(4, "Mount",
               fmt::format("{} from {}{}", mount["mountPath"].AsString(), mount["name"].AsString(),
                           mount["readOnly"].AsBool() ? " (read-only)" : ""));
    }
  }
  return out;
}

// The block four columns further to the right.
std::string Deeper(std::string_view block) {
  std::string out;
  while (!block.empty()) {
    const size_t end = std::min(block.find('\n'), block.size() - 1) + 1;
    out.append("    ").append(block.substr(0, end));
    block.remove_prefix(end);
  }
  return out;
}

std::string Volumes(const Value& volumes) {
  if (volumes.empty()) return "";
  std::string out = Line(0, "Volumes", "");
  for (const Value& volume : volumes.items()) {
    out += Line(2, volume["name"].AsString(), "") + Tree(volume.Remove("name"), 4);
  }
  return out;
}

std::string DescribePod(const Value& pod, Time now) {
  const Value& spec = pod["spec"];
  const Value& status = pod["status"];
  std::string out = Header(pod);
  out += Line(0, "Node", spec["nodeName"].AsString("<none>"));
  out += Line(0, "Start Time", status["startTime"].AsString("<none>"));
  const bool going = pod["metadata"].Has("deletionTimestamp");
  out += Line(0, "Status", going ? "Terminating" : status["phase"].AsString());
  if (status.Has("reason")) out += Line(0, "Reason", status["reason"].AsString());
  if (status.Has("message")) out += Line(0, "Message", status["message"].AsString());
  out += Line(0, "IP", status["podIP"].AsString("<none>"));
  for (const Value& owner : pod["metadata"]["ownerReferences"].items()) {
    if (owner["controller"].AsBool()) {
      out += Line(0, "Controlled By", owner["kind"].Str() + "/" + owner["name"].Str());
    }
  }
  out += Containers("Init Containers", spec["initContainers"], status["initContainerStatuses"]);
  out += Containers("Containers", spec["containers"], status["containerStatuses"]);
  out += Conditions(status["conditions"], now);
  out += Volumes(spec["volumes"]);
  out += Map(0, "Node-Selectors", spec["nodeSelector"], "=");
  return out;
}

std::string DescribeNode(const Value& node, Time now) {
  const Value& status = node["status"];
  std::string out = Header(node);
  out += Line(0, "Created", node["metadata"]["creationTimestamp"].AsString());
  std::string taints;
  for (const Value& taint : node["spec"]["taints"].items()) {
    taints += fmt::format("{}{}={}:{}", taints.empty() ? "" : ", ", taint["key"].AsString(),
                          taint["value"].AsString(), taint["effect"].AsString());
  }
  out += Line(0, "Taints", taints.empty() ? "<none>" : taints);
  out += Line(0, "Unschedulable", node["spec"]["unschedulable"].AsBool() ? "true" : "false");
  out += Conditions(status["conditions"], now);
  out += Line(0, "Addresses", "");
  for (const Value& address : status["addresses"].items()) {
    out += Line(2, address["type"].AsString(), address["address"].AsString());
  }
  out += Named("Capacity", status["capacity"]) + Named("Allocatable", status["allocatable"]);
  out += Line(0, "System Info", "") + Tree(status["nodeInfo"], 2);
  return out;
}

std::string DescribeJob(const schema::TrainingKind& kind, const Value& job, Time now) {
  const Value& status = job["status"];
  std::string out = Header(job);
  out += Line(0, "Created", job["metadata"]["creationTimestamp"].AsString());
  if (status.Has("startTime")) out += Line(0, "Start Time", status["startTime"].AsString());
  if (status.Has("completionTime"))
    out += Line(0, "Completion Time", status["completionTime"].AsString());
  out += Line(0, "Replicas", "");
  for (const auto& [type, replica] : schema::ReplicaSpecsOf(job).members()) {
    const Value& counts = status["replicaStatuses"][type];
    out += Line(2, type,
                fmt::format("{} wanted, {} active, {} succeeded, {} failed, restart policy {}",
                            replica["replicas"].AsInt(1), counts["active"].AsInt(),
                            counts["succeeded"].AsInt(), counts["failed"].AsInt(),
                            replica["restartPolicy"].AsString(kind.restart_policy)));
    const Value& pod = replica["template"]["spec"];
    out += Deeper(Containers("Containers", pod["containers"], Value()));
  }
  out += Line(0, "Run Policy", "") + Tree(job["spec"]["runPolicy"], 2);
  out += Conditions(status["conditions"], now);
  return out;
}

}  // namespace

std::string DescribeObject(const Value& object, Time now) {
  const std::string_view kind = object["kind"].AsString();
  if (kind == "Pod") return DescribePod(object, now);
  if (kind == "Node") return DescribeNode(object, now);
  if (const schema::TrainingKind* training = schema::FindTrainingKind(kind))
    return DescribeJob(*training, object, now);
  std::string out = Header(object);
  out += Line(0, "API Version", object["apiVersion"].AsString()) + Line(0, "Kind", kind);
  out += Line(0, "Created", object["metadata"]["creationTimestamp"].AsString());
  Value rest = object.Remove("metadata").Remove("kind").Remove("apiVersion");
  if (kind == "Secret") {  // sizes, not contents
    for (const auto& [key, value] : object["data"].members()) {
      const std::string bytes = Base64Decode(value.AsString()).value_or("");
      rest = rest.SetPath({"data", key}, fmt::format("{} bytes", bytes.size()));
    }
  }
  return out + Tree(rest, 0);
}

std::string DescribeEvents(const Value& events, Time now) {
  if (events.empty()) return "Events:           <none>\n";
  std::vector<Value> sorted(events.items().begin(), events.items().end());
  auto time_of = [](const Value& event) {
    for (const char* field : {"lastTimestamp", "eventTime", "firstTimestamp"}) {
      if (!event[field].AsString().empty()) return event[field];
    }
    return event["metadata"]["creationTimestamp"];
  };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const Value& a, const Value& b) {
    return time_of(a).AsString() < time_of(b).AsString();
  });
  std::vector<std::vector<std::string>> rows = {{"  Type", "Reason", "Age", "From", "Message"}};
  for (const Value& event : sorted) {
    const int64_t count = event["count"].AsInt(1);
    std::string age = Age(time_of(event), now);
    if (count > 1) age += fmt::format(" (x{})", count);
    const std::string from =
        event["source"]["component"].Str(event["reportingComponent"].AsString());
    rows.push_back(
        {"  " + event["type"].Str(), event["reason"].Str(), age, from, event["message"].Str()});
  }
  return "Events:\n" + FormatColumns(rows);
}

}  // namespace muster::cli
