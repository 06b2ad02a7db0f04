// muster cost: who held what for how long, and what that cost.

#include <algorithm>
#include <functional>
#include <set>

#include "base/files.h"
#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/duration_flag.h"
#include "cli/session.h"
#include "cli/table_printer.h"
#include "cost/history.h"
#include "cost/report.h"
#include "json/write.h"

namespace muster::cli {
namespace {

constexpr const char* kPricesConfigMap = "muster-prices";
constexpr const char* kPricesKey = "prices.yaml";
constexpr const char* kSystemNamespace = "kube-system";
// OpenCost's name of what nobody held.
constexpr const char* kIdle = "__idle__";

struct Sources {
  json::Value nodes, pods, namespaces;
  json::Array ledgers;
  bool has_ledgers = true;
};

Result<Sources> ReadSources(Session& session) {
  const auto path = [](const client::Resource& resource) {
    return client::ApiClient::PathOf({resource, "", "", ""});
  };
  std::vector<Result<json::Value>> answers =
      session.GetJsons({path(client::resources::kNodes), path(client::resources::kPods),
                        path(client::resources::kNamespaces), path(cost::kLedgers)});
  Sources sources;
  if (!answers[0]) return Error(answers[0].error());
  if (!answers[1]) return Error(answers[1].error());
  sources.nodes = *answers[0];
  sources.pods = *answers[1];
  if (answers[2]) sources.namespaces = *answers[2];
  if (answers[3]) {
    sources.ledgers = (*answers[3])["items"].items();
  } else if (answers[3].error().reason() == Reason::kNotFound) {
    sources.has_ledgers = false;
  } else {
    return Error(answers[3].error());
  }
  return sources;
}

// Nodes by name with their times, those that are gone included.
std::map<std::string, std::vector<cost::NodeRow>> GoneNodes(const cost::Ledger& history,
                                                            const std::set<std::string>& live) {
  std::map<std::string, std::vector<cost::NodeRow>> out;
  for (const cost::NodeRow& row : history.nodes)
    if (!live.contains(row.uid)) out[row.name].push_back(row);
  return out;
}

// The history, and what is there up to `now`.
cost::Ledger LedgerUpTo(const Sources& sources, Time now, const std::vector<std::string>& keys) {
  const cost::Ledger history = cost::HistoryOf(sources.ledgers);
  cost::Ledger ledger = history;
  std::map<std::string, cost::NodeFacts> nodes;
  std::map<std::string, std::vector<cost::NodeRow>> rows;
  std::set<std::string> live;
  for (const json::Value& node : sources.nodes["items"].items()) {
    cost::NodeFacts facts = cost::NodeFactsOf(node);
    live.insert(facts.uid);
    rows[facts.name] = cost::NodeRowsOf(facts, history, now);
    ledger.nodes.push_back(rows[facts.name].back());
    nodes[facts.name] = std::move(facts);
  }
  const auto gone = GoneNodes(history, live);
  std::map<std::string, json::Value> namespaces;
  for (const json::Value& each : sources.namespaces["items"].items())
    namespaces[each["metadata"]["name"].Str()] = each;
  for (const json::Value& pod : sources.pods["items"].items()) {
    const std::string node_name = pod["spec"]["nodeName"].Str();
    const cost::NodeFacts& facts = nodes[node_name];
    const cost::PodUse use =
        cost::PodUseOf(pod, facts, namespaces[pod["metadata"]["namespace"].Str()], keys);
    if (const auto found = rows.find(node_name); found != rows.end() && use.from >= facts.created) {
      cost::AddPod(use, found->second, now, ledger);
    } else if (const auto former = gone.find(node_name); former != gone.end()) {
      cost::AddPod(use, former->second, now, ledger);
    }
  }
  return ledger;
}

// Which allocation a row belongs to.
std::function<std::string(const cost::PodRow&)> GroupBy(const std::string& by) {
  if (by == "namespace") return [](const cost::PodRow& row) { return row.ns; };
  if (by == "job") return [](const cost::PodRow& row) { return row.ns + "/" + row.workload; };
  const std::vector<std::string> keys =
      by == "user" ? std::vector<std::string>{"user", "owner"} : std::vector<std::string>{by};
  return [keys, by](const cost::PodRow& row) {
    for (const std::string& key : keys)
      if (const auto found = row.labels.find(key); found != row.labels.end()) return found->second;
    return fmt::format("(no {})", by);
  };
}

Result<cost::PriceBook> ReadPrices(Invocation& invocation) {
  const std::string file = invocation.arguments.Get("prices");
  if (!file.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(file));
    Result<cost::PriceBook> book = cost::PriceBook::ParseYaml(text);
    if (!book) return Error(book.error().WithPrefix(file + ": "));
    return book;
  }
  const Result<json::Value> map = invocation.session.Get(
      {client::resources::kConfigMaps, kSystemNamespace, kPricesConfigMap, ""});
  if (!map) {
    const Reason reason = map.error().reason();
    // Who may not read it gets the built-in prices, and is told which ones hold.
    if (reason == Reason::kForbidden)
      invocation.console.Err(fmt::format("note: built-in prices: {}", map.error().message()));
    if (reason == Reason::kNotFound || reason == Reason::kForbidden) return cost::PriceBook();
    return Error(map.error());
  }
  Result<cost::PriceBook> book = cost::PriceBook::ParseYaml((*map)["data"][kPricesKey].AsString());
  if (!book) {
    return Error(book.error().WithPrefix(
        fmt::format("ConfigMap {}/{}, {}: ", kSystemNamespace, kPricesConfigMap, kPricesKey)));
  }
  return book;
}

// "24h", "7d", "90m".
Result<Duration> ParseSince(const std::string& text) {
  if (text.ends_with('d')) {
    const std::optional<int64_t> days = ParseInt(text.substr(0, text.size() - 1));
    if (days && *days > 0 && *days <= 366) return hours(24) * *days;
    return Error(Reason::kInvalid, "--since {:?}: expected a duration such as 90m, 24h or 7d",
                 text);
  }
  ASSIGN_OR_RETURN(const Duration since, ParseDurationFlag("since", text));
  // The flags of waiting end with a week.
  if (since <= Duration(0) || since >= hours(24) * 7)
    return Error(Reason::kInvalid, "--since {:?}: expected a duration such as 90m, 24h or 7d",
                 text);
  return since;
}

std::vector<std::string> Line(const std::string& name, const cost::Amounts& amounts,
                              const std::string& pods) {
  return {name,
          fmt::format("{:.3f}", amounts.gpu_hours),
          fmt::format("{:.3f}", amounts.cpu_hours),
          fmt::format("{:.3f}", amounts.memory_gib_hours),
          pods,
          fmt::format("{:.4f}", amounts.gpu_cost),
          fmt::format("{:.4f}", amounts.cpu_cost + amounts.memory_cost),
          fmt::format("{:.4f}", amounts.Cost())};
}

void PrintTable(const cost::Report& report, const std::string& by, const std::string& currency,
                Console& console) {
  std::string heading = by;
  for (char& c : heading) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  std::vector<std::vector<std::string>> rows = {
      {heading, "GPU-HOURS", "CPU-HOURS", "GIB-HOURS", "PODS", "GPU", "CPU+MEMORY", currency}};
  for (const cost::Allocation& each : report.allocations)
    rows.push_back(Line(each.name, each.amounts, std::to_string(each.pods)));
  rows.push_back(Line("(idle)", report.idle, "-"));
  rows.push_back(Line("total", report.total, "-"));
  console.Out(FormatColumns(rows));
  if (report.not_counted > Duration(0)) {
    console.Print("not counted: {} in which nobody kept accounts\n",
                  HumanDuration(report.not_counted));
  }
}

// Five decimals, as OpenCost.
json::Value Rounded(double value) { return json::Value::Number(fmt::format("{:.5f}", value)); }

json::Value ToJson(const std::string& name, const cost::Amounts& amounts) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  return json::Obj({{"name", name},
                    {"cpuCoreHours", Rounded(amounts.cpu_hours)},
                    {"cpuCost", Rounded(amounts.cpu_cost)},
                    {"gpuHours", Rounded(amounts.gpu_hours)},
                    {"gpuCost", Rounded(amounts.gpu_cost)},
                    {"ramByteHours", Rounded(amounts.memory_gib_hours * kGiB)},
                    {"ramCost", Rounded(amounts.memory_cost)},
                    {"totalCost", Rounded(amounts.Cost())}});
}

json::Value ToJson(const cost::Report& report, const std::string& by, const std::string& currency) {
  json::Array allocations;
  for (const cost::Allocation& each : report.allocations)
    allocations.push_back(ToJson(each.name, each.amounts).Set("pods", each.pods));
  const auto not_counted = std::chrono::duration_cast<seconds>(report.not_counted).count();
  return json::Obj({{"aggregate", by},
                    {"currency", currency},
                    {"window", json::Obj({{"start", FormatTime(report.window.from)},
                                          {"end", FormatTime(report.window.to)}})},
                    {"secondsNotCounted", static_cast<int64_t>(not_counted)},
                    {"allocations", std::move(allocations)},
                    {"idle", ToJson(kIdle, report.idle)},
                    {"total", ToJson("total", report.total)}});
}

Result<int> Run(Invocation& invocation) {
  const std::string by = invocation.arguments.Get("by");
  ASSIGN_OR_RETURN(const Duration since, ParseSince(invocation.arguments.Get("since")));
  ASSIGN_OR_RETURN(const cost::PriceBook prices, ReadPrices(invocation));
  ASSIGN_OR_RETURN(const Sources sources, ReadSources(invocation.session));
  std::vector<std::string> keys = cost::CostKeys();
  const bool is_kept = std::find(keys.begin(), keys.end(), by) != keys.end();
  const bool is_key = by != "namespace" && by != "job" && by != "user";
  if (is_key && !is_kept) {
    keys.push_back(by);
    invocation.console.Err(
        fmt::format("note: {:?} is known of pods that are there; of those that are gone these are "
                    "kept: {}",
                    by, Join(cost::CostKeys(), ", ")));
  }
  if (!sources.has_ledgers)
    invocation.console.Err("note: this cluster keeps no history: pods that are gone are missing");
  const Time now = invocation.session.loop().Now();
  const cost::Ledger ledger = LedgerUpTo(sources, now, keys);
  const cost::Report report = cost::MakeReport(ledger, prices, {now - since, now}, GroupBy(by));
  if (invocation.arguments.Get("output") == "json") {
    invocation.console.Out(json::WritePretty(ToJson(report, by, prices.currency())) + "\n");
  } else {
    PrintTable(report, by, prices.currency(), invocation.console);
  }
  return 0;
}

}  // namespace

Command CostCommand() {
  Command command;
  command.name = "cost";
  command.summary = "say who held which GPUs, cores and memory for how long, and what that cost";
  command.usage = "[--by KEY] [--since DURATION] [flags]";
  command.details =
      "Pods are charged what they asked for; the rest of what the nodes cost is idle, so that all\n"
      "adds up. Prices: the node's annotation muster.dev/hourly-price, a file (--prices, or the\n"
      "ConfigMap kube-system/muster-prices), the built-in table: docs/cost.md.";
  command.flags = {{"by",
                    'b',
                    "KEY",
                    "namespace, job, user, or an annotation or label such as cost-center",
                    "cost-center",
                    {}},
                   {"since", 0, "DURATION", "how far back: 90m, 24h, 7d", "24h", {}},
                   {"prices", 0, "FILE", "prices in place of the cluster's own", "", {}},
                   {"output", 'o', "FORMAT", "json", "", {"json"}}};
  command.examples = {
      {"muster cost", "the last 24 hours by cost-center"},
      {"muster cost --by job --since 7d", "what each job cost in a week"},
      {"muster cost --by team -o json", "for other programs, with OpenCost's names"}};
  command.instead = "choose with --by";
  command.run = Run;
  return command;
}

}  // namespace muster::cli
