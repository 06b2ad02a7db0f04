// GET of metrics.k8s.io: what nodes and pods use. The answers are made from what the agents say at
// the moment and from the objects that these numbers are about; nothing of it is stored.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "apiserver/errors.h"
#include "apiserver/handlers.h"
#include "apiserver/list_body.h"
#include "apiserver/metrics/node_stats.h"
#include "apiserver/metrics/simulated_usage.h"
#include "apiserver/object_writer.h"
#include "apiserver/reply.h"
#include "apiserver/selection.h"
#include "apiserver/stored_object.h"
#include "schema/quantity_syntax.h"
#include "schema/registry.h"

namespace muster::apiserver {
namespace {

json::Value UsageObject(int64_t cpu_nano, int64_t memory_bytes) {
  const schema::Amount cpu{cpu_nano, schema::QuantityFormat::kDecimalSi};
  const schema::Amount memory{static_cast<__int128>(memory_bytes) * 1'000'000'000,
                              schema::QuantityFormat::kBinarySi};
  return json::Obj({{"cpu", cpu.Canonical()}, {"memory", memory.Canonical()}});
}

// One question on its way: selected on the loop, answered from the pool.
struct Question {
  CallPtr call;
  AnswerFormat format;
  store::Revision revision = 0;
  Time now{};
  bool about_pods = false;
  bool one = false;                                       // get
  schema::KindPtr source;                                 // of `objects`: v1 pods or nodes
  std::vector<store::EntryPtr> objects;                   // whose numbers are asked for
  std::set<std::string, std::less<>> simulated;           // nodes
  std::vector<store::EntryPtr> simulated_pods;            // for numbers of simulated nodes
  std::map<std::string, SamplePtr, std::less<>> samples;  // by node
};
using QuestionPtr = std::shared_ptr<Question>;

// What a kind keeps parsed of one selectable field.
std::string_view FieldOf(const schema::Kind& kind, const store::Entry& entry,
                         std::string_view field) {
  for (size_t i = 0; i < kind.selectable_fields.size(); ++i) {
    if (kind.selectable_fields[i] == field) return MetaOf(entry).fields[i];
  }
  return {};
}

bool Runs(const schema::Kind& pods, const store::Entry& pod) {
  return FieldOf(pods, pod, "status.phase") == "Running";
}

json::Value Metrics(const schema::Kind& kind, const json::Value& object, const Usage& usage) {
  json::Object metadata = {{"name", object["metadata"]["name"]}};
  if (kind.namespaced) metadata.emplace_back("namespace", object["metadata"]["namespace"]);
  metadata.emplace_back("creationTimestamp", FormatTime(usage.time));
  if (const json::Value* labels = object["metadata"].Find("labels"))
    metadata.emplace_back("labels", *labels);
  const int64_t window = std::chrono::duration_cast<seconds>(usage.window).count();
  return json::Obj({{"metadata", json::Value(std::move(metadata))},
                    {"timestamp", FormatTime(usage.time)},
                    {"window", fmt::format("{}s", window)}});
}

// Null: nobody has measured it.
json::Value PodMetrics(const Question& question, const schema::Kind& kind,
                       const store::Entry& entry) {
  const json::Value pod = DecodeStored(*question.source, *entry.value);
  const std::string node = pod["spec"]["nodeName"].Str();
  std::vector<ContainerUsage> containers;
  if (question.simulated.contains(node)) {
    containers = SimulatedUsage(pod, question.now);
  } else if (const auto sample = question.samples.find(node); sample != question.samples.end()) {
    const KeyParts key = ParseKey(entry.key);
    const auto found = sample->second->pods.find(fmt::format("{}/{}", key.ns, key.name));
    if (found != sample->second->pods.end()) containers = found->second;
  }
  if (containers.empty()) return nullptr;
  Usage oldest = containers[0].usage;
  json::Array list;
  for (const ContainerUsage& container : containers) {
    if (container.usage.time < oldest.time) oldest = container.usage;
    list.push_back(json::Obj(
        {{"name", container.name},
         {"usage", UsageObject(container.usage.cpu_nano, container.usage.memory_bytes)}}));
  }
  return Metrics(kind, pod, oldest).Set("containers", json::Value(std::move(list)));
}

std::map<std::string, Usage> UsageOfSimulatedNodes(const Question& question) {
  std::map<std::string, Usage> nodes;
  for (const std::string& name : question.simulated)
    nodes[name] = Usage{question.now, kSimulatedWindow, 0, 0};
  const schema::Kind& pods = *schema::Registry::BuiltIn().Find("", "v1", "pods");
  for (const store::EntryPtr& entry : question.simulated_pods) {
    const json::Value pod = DecodeStored(pods, *entry->value);
    Usage& node = nodes[pod["spec"]["nodeName"].Str()];
    for (const ContainerUsage& container : SimulatedUsage(pod, question.now)) {
      node.cpu_nano += container.usage.cpu_nano;
      node.memory_bytes += container.usage.memory_bytes;
    }
  }
  return nodes;
}

std::vector<store::EntryPtr> MakeAnswers(const Question& question) {
  const schema::Kind& kind = *question.format.kind;
  std::vector<store::EntryPtr> answers;
  std::map<std::string, Usage> simulated;
  if (!question.about_pods) simulated = UsageOfSimulatedNodes(question);
  for (const store::EntryPtr& entry : question.objects) {
    json::Value metrics;
    if (question.about_pods) {
      metrics = PodMetrics(question, kind, *entry);
    } else {
      const std::string name(ParseKey(entry->key).name);
      const auto sample = question.samples.find(name);
      std::optional<Usage> usage;
      if (const auto found = simulated.find(name); found != simulated.end()) {
        usage = found->second;
      } else if (sample != question.samples.end()) {
        usage = sample->second->node;
      }
      if (!usage) continue;
      metrics = Metrics(kind, DecodeStored(*question.source, *entry->value), *usage)
                    .Set("usage", UsageObject(usage->cpu_nano, usage->memory_bytes));
    }
    if (!metrics.IsNull()) answers.push_back(EntryOf(kind, metrics));
  }
  return answers;
}

void Reply(Core& core, const Question& question, std::vector<store::EntryPtr> answers) {
  Call& call = *question.call;
  if (!question.one) {
    ListFacts facts;
    facts.revision = question.revision;
    return ReplyList(core, question.call,
                     ListBody(question.format, std::move(answers), facts, nullptr, question.now));
  }
  if (answers.empty()) return call.Fail(NotFoundError(*question.format.kind, call.info().name));
  std::string body;
  const Status written = AppendObject(body, question.format, *answers.front(), core.loop.Now());
  if (!written.ok()) return call.Fail(written);
  call.Reply(200, std::move(body));
}

// After the nodes have answered.
void Answer(Core& core, const QuestionPtr& question, const std::vector<std::string>& nodes) {
  for (const std::string& node : nodes) {
    if (SamplePtr sample = core.node_stats->Find(node)) question->samples[node] = std::move(sample);
  }
  question->now = core.loop.Now();
  if (core.options.pool == nullptr) return Reply(core, *question, MakeAnswers(*question));
  auto answers = std::make_shared<std::vector<store::EntryPtr>>();
  core.options.pool->Run(
      [question, answers] { *answers = MakeAnswers(*question); }, core.loop,
      core.Guarded([&core, question, answers] { Reply(core, *question, std::move(*answers)); }));
}

bool IsSimulated(const Core& core, const schema::Kind& nodes, std::string_view name) {
  const store::EntryPtr entry = core.store.Get(ObjectKey(nodes, "", name));
  return entry != nullptr && MetaOf(*entry).Label(kSimulatedLabel) == "true";
}

// Sorts the nodes that matter into simulated ones and those that have to be asked.
std::vector<std::string> NodesToAsk(Core& core, Question& question) {
  const schema::Kind& nodes = *schema::Registry::BuiltIn().Find("", "v1", "nodes");
  std::set<std::string, std::less<>> names;
  for (const store::EntryPtr& entry : question.objects) {
    names.emplace(question.about_pods ? FieldOf(*question.source, *entry, "spec.nodeName")
                                      : ParseKey(entry->key).name);
  }
  std::vector<std::string> ask;
  for (const std::string& name : names) {
    if (IsSimulated(core, nodes, name)) {
      question.simulated.insert(name);
    } else if (!name.empty()) {
      ask.push_back(name);
    }
  }
  return ask;
}

Status FindPodsOfSimulated(const Core& core, Question& question) {
  const schema::Kind& pods = *schema::Registry::BuiltIn().Find("", "v1", "pods");
  ASSIGN_OR_RETURN(const store::RangeResult range, core.store.Range(KeyPrefix(pods), "", 0, 0));
  for (const store::EntryPtr& entry : range.entries) {
    const std::string_view node = FieldOf(pods, *entry, "spec.nodeName");
    if (Runs(pods, *entry) && question.simulated.contains(node))
      question.simulated_pods.push_back(entry);
  }
  return Status::Ok();
}

Status Ask(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  const RequestInfo& info = call->info();
  if (info.verb != "get" && info.verb != "list") return MethodNotAllowedError();
  const auto question = std::make_shared<Question>();
  question->call = call;
  question->one = info.verb == "get";
  question->about_pods = resource->kind->namespaced;
  question->source = schema::Registry::BuiltIn().Find("", "v1", resource->kind->plural);
  ASSIGN_OR_RETURN(question->format, FormatOf(*call, resource));
  ASSIGN_OR_RETURN(const SelectionPtr selection, Selection::Make(question->source, info));
  ASSIGN_OR_RETURN(store::RangeResult range, core.store.Range(selection->prefix(), "", 0, 0));
  question->revision = range.revision;
  for (store::EntryPtr& entry : range.entries) {
    if (question->about_pods && !Runs(*question->source, *entry)) continue;
    if (selection->everything() || selection->Matches(*entry))
      question->objects.push_back(std::move(entry));
  }
  std::vector<std::string> nodes = NodesToAsk(core, *question);
  if (!question->about_pods && !question->simulated.empty())
    RETURN_IF_ERROR(FindPodsOfSimulated(core, *question));
  core.node_stats->Fetch(nodes, [&core, question, nodes] { Answer(core, question, nodes); });
  return Status::Ok();
}

}  // namespace

void HandleMetrics(Core& core, const CallPtr& call, const ResourcePtr& resource) {
  if (Status status = Ask(core, call, resource); !status.ok()) call->Fail(status);
}

}  // namespace muster::apiserver
