#include "apiserver/health.h"

#include <algorithm>

#include "apiserver/errors.h"
#include "base/log.h"

namespace muster::apiserver {

void Health::Add(std::string name, Check check, bool also_live) {
  checks_.push_back({std::move(name), std::move(check), also_live});
}

bool Health::Handle(Call& call, const User& user) const {
  const RequestInfo& info = call.info();
  if (info.parts.empty() || info.parts.size() > 2) return false;
  const std::string& which = info.parts[0];
  if (which != "healthz" && which != "livez" && which != "readyz") return false;
  if (info.method != "GET" && info.method != "HEAD") {
    call.Fail(MethodNotAllowedError());
    return true;
  }
  const std::string only = info.parts.size() == 2 ? info.parts[1] : "";
  const std::vector<std::string> excluded = info.query.GetAll("exclude");
  std::string lines;
  bool healthy = true, found = false;
  for (const Named& one : checks_) {
    if (which != "readyz" && !one.also_live) continue;
    if (!only.empty() && one.name != only) continue;
    found = true;
    if (std::ranges::find(excluded, one.name) != excluded.end()) {
      lines += fmt::format("[+]{} excluded: ok\n", one.name);
      continue;
    }
    const Status status = one.check();
    healthy = healthy && status.ok();
    if (!status.ok())
      LOG_WARN("apiserver: failed a health check check={} error={:?}", one.name, status.message());
    lines += status.ok()
                 ? fmt::format("[+]{} ok\n", one.name)
                 : fmt::format("[-]{} failed: {}\n", one.name,
                               user.InGroup(kMastersGroup) ? status.message() : "reason withheld");
  }
  if (!found) return false;
  if (!healthy) {
    call.ReplyText(500, fmt::format("{}{} check failed\n", lines, which));
  } else if (only.empty() && info.query.Has("verbose")) {
    call.ReplyText(200, fmt::format("{}{} check passed\n", lines, which));
  } else {
    call.ReplyText(200, "ok");
  }
  return true;
}

}  // namespace muster::apiserver
