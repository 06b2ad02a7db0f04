#include "cli/log_follower.h"

#include <utility>

#include "base/strings.h"
#include "net/url.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxErrorBytes = 16 * 1024;
constexpr int kMaxOpenFailures = 20;  // in a row, for one run of a container

const json::Value& StatusOf(const json::Value& pod, const std::string& container) {
  static const json::Value kNull;
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const json::Value& status : pod["status"][list].items()) {
      if (status["name"].AsString() == container) return status;
    }
  }
  return kNull;
}

Colour ColourOf(const std::string& pod_name) {
  constexpr Colour kColours[] = {Colour::kCyan, Colour::kGreen, Colour::kYellow, Colour::kMagenta,
                                 Colour::kBlue};
  return kColours[Hash64(pod_name) % std::size(kColours)];
}

}  // namespace

std::string DefaultContainer(const json::Value& pod) {
  const std::string named =
      pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"].Str();
  return named.empty() ? pod["spec"]["containers"].At(0)["name"].Str() : named;
}

std::string LogPath(const json::Value& pod, const LogOptions& options,
                    const std::string& since_time) {
  net::Query query;
  query.Add("container", options.container.empty() ? DefaultContainer(pod) : options.container);
  if (options.follow) query.Add("follow", "true");
  if (options.previous) query.Add("previous", "true");
  query.Add("timestamps", "true");  // by them a line is known again after a reconnect
  if (!since_time.empty()) {
    query.Add("sinceTime", since_time);
  } else {
    if (!options.tail_lines.empty()) query.Add("tailLines", options.tail_lines);
    if (!options.since_seconds.empty()) query.Add("sinceSeconds", options.since_seconds);
  }
  if (!options.limit_bytes.empty()) query.Add("limitBytes", options.limit_bytes);
  const json::Value& metadata = pod["metadata"];
  return client::ApiClient::PathOf({client::resources::kPods, metadata["namespace"].Str(),
                                    metadata["name"].Str(), "log"}) +
         "?" + query.Encode();
}

// One pod. A "run" is one life of its container: "UID:RESTARTS".
struct LogFollower::Reader {
  std::string name;
  json::Value pod;
  std::unique_ptr<client::StreamHandle> stream;
  std::string run;        // being read, or read last
  std::string done_run;   // read to its end
  Time last_time{};       // of the last line of `run`
  std::string last_text;  // as the server wrote it
  int last_count = 0;     // lines with this very time
  int skip_count = 0;     // of these, still to be skipped after a reconnect
  bool resuming = false;
  std::string partial;
  std::string error_body;
  int http_status = 0;
  int failures = 0;
  bool waiting = false;  // for a retry

  // The newest run that has written something, "" if there is none yet.
  std::string RunOf(const LogOptions& options) const {
    if (options.unconditional) return pod["metadata"]["uid"].Str() + ":asked";
    const std::string& wanted_container = options.container;
    const std::string container =
        wanted_container.empty() ? DefaultContainer(pod) : wanted_container;
    const json::Value& status = StatusOf(pod, container);
    const json::Value& state = status["state"];
    const bool started =
        state.Has("running") || state.Has("terminated") || status["lastState"].Has("terminated");
    if (!started) return "";
    int64_t restarts = status["restartCount"].AsInt();
    if (state.Has("waiting") && restarts > 0) --restarts;  // between two runs
    return fmt::format("{}:{}", pod["metadata"]["uid"].AsString(), restarts);
  }
};

LogFollower::LogFollower(Session& session, Console& console, LogOptions options)
    : session_(session), console_(console), options_(std::move(options)) {}

LogFollower::~LogFollower() = default;

void LogFollower::OnPod(const json::Value& pod) {
  if (pod.IsNull()) return;
  const std::string name = pod["metadata"]["name"].Str();
  std::unique_ptr<Reader>& reader = readers_[name];
  if (!reader) {
    reader = std::make_unique<Reader>();
    reader->name = name;
  }
  reader->pod = pod;
  Consider(*reader);
}

bool LogFollower::Idle() const {
  for (const auto& [name, reader] : readers_) {
    if (reader->stream || reader->waiting) return false;
    const std::string run = reader->RunOf(options_);
    const bool wanted = options_.restarts || reader->done_run.empty();
    if (wanted && !run.empty() && run != reader->done_run) return false;
  }
  return true;
}

bool LogFollower::Finished(const std::string& pod_name) const {
  const auto found = readers_.find(pod_name);
  return found != readers_.end() && !found->second->done_run.empty();
}

void LogFollower::Consider(Reader& reader) {
  if (reader.stream || reader.waiting) return;
  const std::string run = reader.RunOf(options_);
  if (run.empty() || run == reader.done_run) return;
  if (!options_.restarts && !reader.done_run.empty()) return;
  Open(reader, run);
}

void LogFollower::Open(Reader& reader, const std::string& run) {
  if (reader.run != run) {
    reader.run = run;
    reader.last_time = Time{};
    reader.last_text.clear();
    reader.last_count = 0;
    reader.failures = 0;
  }
  reader.resuming = !reader.last_text.empty();
  reader.skip_count = reader.last_count;
  reader.http_status = 0;
  reader.error_body.clear();
  net::Request request{.method = "GET", .target = LogPath(reader.pod, options_, reader.last_text)};
  client::StreamCallbacks callbacks;
  callbacks.on_head = [&reader](int status, const net::Headers&) { reader.http_status = status; };
  callbacks.on_data = [this, &reader](std::string_view bytes) {
    if (reader.http_status != 200) {
      reader.error_body +=
          bytes.substr(0, kMaxErrorBytes - std::min(kMaxErrorBytes, reader.error_body.size()));
      return;
    }
    reader.failures = 0;
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      reader.partial += bytes.substr(0, end);
      if (end == std::string_view::npos) break;
      bytes.remove_prefix(end + 1);
      Print(reader, reader.partial);
      reader.partial.clear();
    }
    if (reader.partial.size() > kMaxPartialLineBytes) {
      Print(reader, reader.partial);
      reader.partial.clear();
    }
  };
  callbacks.on_end = [this, &reader](const Status& status) { OnEnd(reader, status); };
  reader.stream = session_.client().RawStream(std::move(request), std::move(callbacks));
}

void LogFollower::OnEnd(Reader& reader, const Status& status) {
  Status failure = status;
  if (status.ok() && reader.http_status != 200) {
    net::Response answer;
    answer.status = reader.http_status;
    answer.body = std::move(reader.error_body);
    failure = client::ApiClient::StatusOf(answer);
  }
  const bool give_up = !failure.ok() && (++reader.failures >= kMaxOpenFailures || !options_.follow);
  if (failure.ok() || give_up) {
    reader.done_run = reader.run;
    if (!reader.partial.empty()) Print(reader, reader.partial);
  }
  reader.partial.clear();  // after a break the line comes again, whole
  if (give_up && on_error_) on_error_(failure);
  // Not from inside the stream's own callback.
  reader.waiting = true;
  const Duration delay = failure.ok() ? Duration(0) : kLogRetryDelay;
  session_.loop().After(delay, lifetime_.Guard([this, &reader] {
    reader.stream.reset();
    reader.waiting = false;
    Consider(reader);
    if (Idle() && on_idle_) on_idle_();
  }));
}

// After a reconnect the server repeats what it wrote in the second of the break: known lines are
// skipped by their time.
bool LogFollower::IsNew(Reader& reader, Time time, std::string_view text) {
  if (reader.resuming) {
    if (time < reader.last_time) return false;
    if (time == reader.last_time && reader.skip_count > 0) {
      --reader.skip_count;
      return false;
    }
    reader.resuming = false;
  }
  reader.last_count = time == reader.last_time ? reader.last_count + 1 : 1;
  reader.last_time = time;
  reader.last_text = std::string(text);
  return true;
}

// `line` begins with its time and a blank.
void LogFollower::Print(Reader& reader, std::string_view line) {
  const size_t blank = line.find(' ');
  const std::string_view stamp = line.substr(0, blank);
  if (const std::optional<Time> time = ParseTime(stamp)) {
    if (!IsNew(reader, *time, stamp)) return;
    if (!options_.timestamps) line = blank == std::string_view::npos ? "" : line.substr(blank + 1);
  }
  std::string text;
  if (options_.prefix) {
    std::string_view shown = reader.name;
    if (!options_.strip.empty() && shown.starts_with(options_.strip))
      shown.remove_prefix(options_.strip.size());
    text = console_.Paint(ColourOf(reader.name), fmt::format("[{}]", shown)) + " ";
  }
  text += line;
  text += '\n';
  console_.Out(text);
}

}  // namespace muster::cli
