#include "app/doctor/doctor.h"

#include <string>
#include <vector>

#include <fmt/core.h>

#include "app/doctor/checks.h"
#include "app/doctor/probe.h"
#include "app/up_options.h"
#include "base/strings.h"
#include "cli/console.h"
#include "cli/session.h"
#include "json/value.h"
#include "json/write.h"

namespace muster::app {
namespace {

const char* Word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "OK";
    case Verdict::kWarn:
      return "WARN";
    case Verdict::kFail:
      return "FAIL";
  }
  return "";
}

cli::Colour ColourOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return cli::Colour::kGreen;
    case Verdict::kWarn:
      return cli::Colour::kYellow;
    case Verdict::kFail:
      return cli::Colour::kRed;
  }
  return cli::Colour::kPlain;
}

std::string Sentence(const Finding& finding) {
  return finding.fix.empty() ? finding.message
                             : fmt::format("{}; fix: {}", finding.message, finding.fix);
}

json::Value AsJson(const std::vector<Finding>& findings) {
  json::Array items;
  for (const Finding& finding : findings) {
    items.push_back(json::Obj({{"check", finding.subject},
                               {"status", Word(finding.verdict)},
                               {"message", finding.message},
                               {"fix", finding.fix}}));
  }
  return json::Value(std::move(items));
}

Result<int> RunDoctor(const cli::Arguments& arguments, cli::Console& console) {
  UpOptions options;
  ASSIGN_OR_RETURN(options.data_dir,
                   AbsoluteDataDir(arguments.Has("data-dir") ? arguments.Get("data-dir")
                                                             : cli::DefaultDataDir()));
  if (arguments.Has("listen")) {
    RETURN_IF_ERROR(ParseListen(arguments.Get("listen"), options.listen_host, options.listen_port));
  }
  ASSIGN_OR_RETURN(const int64_t kubelet_port,
                   arguments.GetInt("kubelet-port", options.kubelet_port, 0, 65535));
  options.kubelet_port = static_cast<int>(kubelet_port);
  HostFacts facts = ProbeHost(options, true);
  facts.about_to_start = false;
  const std::vector<Finding> findings = Examine(facts);
  if (arguments.Get("output") == "json") {
    console.Out(json::WritePretty(AsJson(findings)) + "\n");
  } else {
    for (const Finding& finding : findings) {
      const std::string word = fmt::format("{:<4}", Word(finding.verdict));
      console.Print("{}  {:<15}  {}\n", console.Paint(ColourOf(finding.verdict), word),
                    finding.subject, Sentence(finding));
    }
  }
  return AnyFailed(findings) ? 1 : 0;
}

}  // namespace

cli::Command DoctorCommand() {
  cli::Command command;
  command.name = "doctor";
  command.summary = "say what this machine lacks for muster, and how to mend it";
  command.usage = "[flags]";
  command.details =
      "One line for each thing that muster depends on. FAIL: `muster up` cannot work, and says "
      "the\n"
      "same; WARN: it works, but not everything in it. Changes nothing. Exit code 1 if anything\n"
      "fails.";
  command.flags = {{"data-dir",
                    0,
                    "DIR",
                    "where the cluster's state is or will be (default: as `muster up`)",
                    "",
                    {}},
                   {"listen", 0, "HOST:PORT", "as for `muster up`", "", {}},
                   {"kubelet-port", 0, "PORT", "as for `muster up`", "", {}},
                   {"output", 'o', "FORMAT", "text or json", "text", {"text", "json"}}};
  command.examples = {
      {"muster doctor", "as this user, who will run `muster up`"},
      {"muster doctor -o json | jq '.[] | select(.status != \"OK\")'", "for tools"}};
  command.local = true;
  command.run_offline = RunDoctor;
  return command;
}

Status CheckHost(UpOptions& options) {
  const HostFacts facts = ProbeHost(options, false);
  const std::vector<Finding> findings = Examine(facts);
  std::vector<std::string> failed;
  for (const Finding& finding : findings) {
    const std::string line = fmt::format("{}: {}", finding.subject, Sentence(finding));
    if (finding.verdict == Verdict::kFail) failed.push_back(line);
    if (finding.verdict == Verdict::kWarn && !finding.node_says)
      fmt::print(stderr, "muster up: warning: {}\n", line);
    const bool others_chosen = finding.subject == kRangesSubject && !facts.kept_ranges &&
                               RangesFor(facts) != agent::AddressRanges();
    if (finding.verdict == Verdict::kOk && others_chosen)
      fmt::print(stderr, "muster up: {}\n", line);
  }
  if (!failed.empty()) {
    return Error(Reason::kForbidden, "{}\nnothing was changed; muster doctor looks again",
                 Join(failed, "\nmuster up: "));
  }
  options.ranges = RangesFor(facts).value_or(options.ranges);
  return Status::Ok();
}

}  // namespace muster::app
