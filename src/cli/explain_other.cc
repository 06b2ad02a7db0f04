// What can be said of an object that nothing is planned for: a claim, an autoscaler, an account.

#include <algorithm>

#include <fmt/core.h>

#include "cli/explanation.h"

namespace muster::cli {
namespace {

// The latest; older ones are in `muster describe`.
constexpr size_t kMaxEventsTold = 5;

std::string SentenceFor(const json::Value& object) {
  const json::Value& status = object["status"];
  if (const std::string phase = status["phase"].Str(); !phase.empty()) {
    const std::string volume = object["spec"]["volumeName"].Str();
    return fmt::format("is {}{}", phase, volume.empty() ? "" : ", with volume " + volume);
  }
  if (!status["conditions"].empty()) return "says of itself:";
  return "exists; its status has neither a phase nor conditions";
}

std::string LineFor(const json::Value& condition) {
  std::string out =
      fmt::format("{} is {}", condition["type"].AsString(), condition["status"].AsString());
  for (const char* key : {"reason", "message"}) {
    if (const std::string text = condition[key].Str(); !text.empty()) out += ": " + text;
  }
  return out;
}

}  // namespace

Result<Explanation> ExplainOther(Session& session, const ApiResource& resource,
                                 const json::Value& object) {
  const std::string ns = object["metadata"]["namespace"].Str();
  const std::string name = object["metadata"]["name"].Str();
  const std::string sentence = SentenceFor(object);
  Explanation out;
  out.sentence = fmt::format("{} {} {}", resource.kind, name, sentence);
  out.json = json::Obj(
      {{"kind", resource.kind}, {"namespace", ns}, {"name", name}, {"message", sentence}});
  for (const json::Value& condition : object["status"]["conditions"].items())
    out.lines.push_back(LineFor(condition));
  if (!object["status"]["conditions"].empty())
    out.json = out.json.Set("conditions", object["status"]["conditions"]);
  ASSIGN_OR_RETURN(json::Array events, EventsOf(session, resource.kind, ns, name));
  if (events.size() > kMaxEventsTold) events.resize(kMaxEventsTold);
  json::Array told;
  for (const json::Value& event : events) {
    const json::Value& reason = event["reason"];
    out.lines.push_back(
        fmt::format("event {}: {}", reason.AsString(), event["message"].AsString()));
    told.push_back(json::Obj({{"reason", reason}, {"message", event["message"]}}));
  }
  if (!told.empty()) out.json = out.json.Set("events", json::Value(std::move(told)));
  out.lines.emplace_back(
      "what waits for which reason, and what would change that, is known of pods, gangs, jobs and "
      "nodes");
  return out;
}

}  // namespace muster::cli
