// muster get: objects as the server's tables, or whole.

#include <map>
#include <utility>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/object_printer.h"
#include "cli/object_watch.h"
#include "cli/resource_arguments.h"
#include "cli/resource_finder.h"
#include "cli/session.h"
#include "cli/table_printer.h"
#include "client/watch_decoder.h"
#include "json/parse.h"
#include "net/url.h"

namespace muster::cli {
namespace {

struct GetOptions {
  std::string output;
  std::string label_selector, field_selector;
  bool all_namespaces = false;
  bool ignore_not_found = false;
  TableOptions table;
};

std::string PathFor(const ApiResource& resource, const std::string& ns, const std::string& name,
                    const GetOptions& options, net::Query query = {}) {
  if (name.empty()) {
    if (!options.label_selector.empty()) query.Add("labelSelector", options.label_selector);
    if (!options.field_selector.empty()) query.Add("fieldSelector", options.field_selector);
  }
  std::string path = client::ApiClient::PathOf({resource.resource, ns, name, ""});
  const std::string encoded = query.Encode();
  return encoded.empty() ? path : path + "?" + encoded;
}

class Getter {
 public:
  Getter(Invocation& invocation, GetOptions options)
      : session_(invocation.session), console_(invocation.console), options_(std::move(options)) {}

  Result<int> Get(const std::vector<Wanted>& wanted) {
    return Whole() ? PrintWhole(wanted) : PrintTables(wanted);
  }

  Result<int> Watch(const Wanted& wanted);

 private:
  std::string NamespaceOf(const ApiResource& resource) const {
    return options_.all_namespaces ? "" : NamespaceFor(resource, session_);
  }
  TableOptions TableOptionsFor(const ApiResource& resource, bool several) const {
    TableOptions out = options_.table;
    out.with_namespace = options_.all_namespaces && resource.namespaced;
    if (several) out.name_prefix = resource.ObjectName("");
    return out;
  }

  // A missing object is reported and the others are shown: false.
  Result<bool> Fetch(const std::string& path, const std::string& accept, json::Value& out) {
    Result<json::Value> answer = session_.GetJson(path, accept);
    if (answer) {
      out = *std::move(answer);
      return true;
    }
    if (answer.error().reason() != Reason::kNotFound) return Error(answer.error());
    if (options_.ignore_not_found) return false;
    return Error(answer.error());
  }

  Result<int> PrintTables(const std::vector<Wanted>& wanted);
  Result<int> PrintWhole(const std::vector<Wanted>& wanted);
  // A watch in progress; it outlives the connections that it is made of.
  struct Following {
    const Wanted& wanted;
    TablePrinter printer;
    std::string version;                      // to go on from
    std::map<std::string, std::string> told;  // what was printed last: version by namespace/name
  };
  Status ListOnce(Following& watch);
  Status WatchOnce(Following& watch);
  Status OnFrame(Following& watch, const client::WatchFrame& frame);
  bool IsNews(Following& watch, const std::string& type, const json::Value& object);
  void PrintEvent(const Wanted& wanted, const client::WatchFrame& frame, TablePrinter& printer);
  bool Whole() const {
    return options_.output == "json" || options_.output == "yaml" || options_.output == "name";
  }
  std::string WatchPath(const Wanted& wanted, net::Query query) const {
    GetOptions selection = options_;
    if (!wanted.names.empty()) selection.field_selector = "metadata.name=" + wanted.names[0];
    return PathFor(wanted.resource, NamespaceOf(wanted.resource), "", selection, std::move(query));
  }

  Session& session_;
  Console& console_;
  const GetOptions options_;
};

Result<int> Getter::PrintTables(const std::vector<Wanted>& wanted) {
  size_t printed = 0;
  std::optional<Status> error;
  for (const Wanted& one : wanted) {
    TablePrinter printer(console_, TableOptionsFor(one.resource, wanted.size() > 1));
    std::vector<std::string> names = one.names.empty() ? std::vector<std::string>{""} : one.names;
    json::Value whole;
    for (const std::string& name : names) {
      json::Value table;
      Result<bool> found = Fetch(PathFor(one.resource, NamespaceOf(one.resource), name, options_),
                                 kTableAccept, table);
      if (!found && !name.empty()) {
        if (error) console_.Err("Error from server (NotFound): " + error->message());
        error = found.error();
        continue;
      }
      if (!found) return Error(found.error());
      if (whole.IsNull()) {
        whole = table;
      } else {
        for (const json::Value& row : table["rows"].items())
          whole = whole.Set("rows", whole["rows"].Append(row));
      }
    }
    if (whole["rows"].empty()) continue;
    if (printed > 0) console_.Out("\n");
    printed += printer.Add(whole);
  }
  if (error) return Error(*error);
  if (printed == 0 && !options_.ignore_not_found) {
    const bool scoped =
        !options_.all_namespaces && !wanted.empty() && wanted[0].resource.namespaced;
    console_.Err(scoped ? fmt::format("No resources found in {} namespace.", session_.ns())
                        : "No resources found");
  }
  return 0;
}

Result<int> Getter::PrintWhole(const std::vector<Wanted>& wanted) {
  std::vector<json::Value> objects;
  std::string names;
  bool always_list = false;
  for (const Wanted& one : wanted) {
    const std::string ns = NamespaceOf(one.resource);
    std::vector<json::Value> found;
    for (const std::string& name : one.names) {
      json::Value object;
      ASSIGN_OR_RETURN(
          bool there, Fetch(PathFor(one.resource, ns, name, options_), "application/json", object));
      if (there) found.push_back(std::move(object));
    }
    if (one.names.empty()) {
      always_list = true;
      json::Value list;
      ASSIGN_OR_RETURN(bool there,
                       Fetch(PathFor(one.resource, ns, "", options_), "application/json", list));
      for (const json::Value& item : list["items"].items()) {
        if (there)
          found.push_back(item.Has("kind") ? item
                                           : json::Obj({{"apiVersion", one.resource.ApiVersion()},
                                                        {"kind", one.resource.kind}}));
        if (there && !item.Has("kind")) {
          for (const auto& [key, value] : item.members())
            found.back() = found.back().Set(key, value);
        }
      }
    }
    for (json::Value& object : found) {
      names += one.resource.ObjectName(object["metadata"]["name"].AsString()) + "\n";
      objects.push_back(std::move(object));
    }
  }
  if (options_.output == "name") {
    console_.Out(names);
  } else if (always_list || !objects.empty()) {
    console_.Out(PrintObjects(objects, always_list, options_.output));
  }
  return 0;
}

void Getter::PrintEvent(const Wanted& wanted, const client::WatchFrame& frame,
                        TablePrinter& printer) {
  if (frame.type == "BOOKMARK") return;
  if (frame.object["kind"].AsString() == "Table") {
    printer.Add(frame.object);
  } else if (options_.output == "name") {
    console_.Out(wanted.resource.ObjectName(frame.object["metadata"]["name"].AsString()) + "\n");
  } else {
    console_.Out((options_.output == "yaml" ? "---\n" : "") +
                 PrintObjects({frame.object}, false, options_.output));
  }
}

// False for a state of the object that was printed already, as after a new list.
bool Getter::IsNews(Following& watch, const std::string& type, const json::Value& object) {
  const json::Value& metadata = object["metadata"];
  const std::string key = metadata["namespace"].Str() + "/" + metadata["name"].Str();
  const std::string version = metadata["resourceVersion"].Str();
  if (type == "DELETED") return watch.told.erase(key) > 0;
  if (version.empty()) return true;
  std::string& told = watch.told[key];
  return std::exchange(told, version) != version;
}

Status Getter::ListOnce(Following& watch) {
  ASSIGN_OR_RETURN(json::Value list, session_.GetJson(WatchPath(watch.wanted, {}),
                                                      Whole() ? "application/json" : kTableAccept));
  const bool first = watch.version.empty();
  watch.version = list["metadata"]["resourceVersion"].Str();
  if (Whole()) {
    for (const json::Value& item : list["items"].items()) {
      if (IsNews(watch, "ADDED", item)) PrintEvent(watch.wanted, {"ADDED", item}, watch.printer);
    }
    return Status::Ok();
  }
  json::Array rows;
  for (const json::Value& row : list["rows"].items()) {
    if (IsNews(watch, "ADDED", row["object"])) rows.push_back(row);
  }
  if (first || !rows.empty()) watch.printer.Add(list.Set("rows", json::Value(std::move(rows))));
  return Status::Ok();
}

Status Getter::OnFrame(Following& watch, const client::WatchFrame& frame) {
  const json::Value& object = frame.object;
  if (frame.type == "ERROR") return Status(Reason::kExpired, object["message"].Str());
  const json::Value& row = object["rows"].At(0)["object"];
  const json::Value& seen = row.IsNull() ? object : row;
  const json::Value& version = seen["metadata"]["resourceVersion"];
  if (version.IsString()) watch.version = version.Str();
  if (frame.type != "BOOKMARK" && IsNews(watch, frame.type, seen))
    PrintEvent(watch.wanted, frame, watch.printer);
  return Status::Ok();
}

// Until the stream ends. Expired: only a new list helps. ServiceUnavailable: the server is away.
Status Getter::WatchOnce(Following& watch) {
  net::Query query;
  query.Add("watch", "true");
  query.Add("resourceVersion", watch.version);
  net::Request request{.method = "GET", .target = WatchPath(watch.wanted, std::move(query))};
  request.headers.Add("Accept", Whole() ? "application/json" : kTableAccept);
  Status end;
  int http_status = 200;
  client::WatchDecoder decoder;
  std::unique_ptr<client::StreamHandle> stream;
  session_.RunUntilDone([&](std::function<void()> done) {
    client::StreamCallbacks callbacks;
    callbacks.on_head = [&](int code, const net::Headers&) { http_status = code; };
    callbacks.on_data = [&, done](std::string_view bytes) {
      if (http_status != 200 || !end.ok()) return;
      console_.StatusLine("");
      decoder.Feed(bytes);
      while (true) {
        Result<std::optional<client::WatchFrame>> frame = decoder.Next();
        if (frame && !*frame) return;
        end = frame ? OnFrame(watch, **frame) : frame.error();
        if (!end.ok()) return done();
      }
    };
    callbacks.on_end = [&, done](const Status& status) {
      if (!status.ok()) end = Status(Reason::kServiceUnavailable, status.message());
      done();
    };
    stream = session_.client().RawStream(std::move(request), std::move(callbacks));
  });
  stream.reset();
  if (http_status == 200) return end;
  const bool away = http_status >= 500 || http_status == 429;
  const std::string text = fmt::format("the server refused to watch ({})", http_status);
  if (http_status == 410) return Status(Reason::kExpired, text);
  return Status(away ? Reason::kServiceUnavailable : Reason::kBadRequest, text);
}

// A server that goes away comes back: the watch goes on where it was, or lists again.
Result<int> Getter::Watch(const Wanted& wanted) {
  if (wanted.names.size() > 1)
    return Error(Reason::kInvalid, "--watch follows one object or one collection");
  Following watch{wanted, TablePrinter(console_, TableOptionsFor(wanted.resource, false)), "", {}};
  RETURN_IF_ERROR(ListOnce(watch));
  bool told_away = false;
  while (true) {
    Status end = WatchOnce(watch);
    if (!end.ok() && end.reason() == Reason::kExpired) {
      session_.Sleep(kWatchRetryDelay);
      end = ListOnce(watch);
    }
    if (end.ok()) {
      told_away = false;
      continue;
    }
    const bool away = end.reason() == Reason::kServiceUnavailable ||
                      end.reason() == Reason::kTimeout || end.message().starts_with("http");
    if (!away) return Error(end);
    console_.StatusLine("waiting for the server: " + end.message());
    if (!console_.err_is_terminal() && !std::exchange(told_away, true))
      console_.Err("muster: waiting for the server: " + end.message());
    session_.Sleep(kWatchRetryDelay);
  }
}

Result<int> Run(Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  GetOptions options;
  options.output = arguments.Get("output");
  options.label_selector = arguments.Get("selector");
  options.field_selector = arguments.Get("field-selector");
  options.all_namespaces = arguments.Has("all-namespaces");
  options.ignore_not_found = arguments.Has("ignore-not-found");
  options.table.wide = options.output == "wide";
  options.table.headers = !arguments.Has("no-headers");
  options.table.show_labels = arguments.Has("show-labels");
  ResourceFinder finder(invocation.session);
  ASSIGN_OR_RETURN(std::vector<Wanted> wanted, ParseWanted(finder, arguments.positionals));
  for (const Wanted& one : wanted) {
    if (one.names.empty()) continue;
    if (options.all_namespaces)
      return Error(Reason::kInvalid, "a name needs one namespace: leave out --all-namespaces");
    if (!options.label_selector.empty())
      return Error(Reason::kInvalid, "give either names or --selector");
  }
  Getter getter(invocation, std::move(options));
  if (!arguments.Has("watch")) return getter.Get(wanted);
  if (wanted.size() != 1) return Error(Reason::kInvalid, "--watch follows one type at a time");
  return getter.Watch(wanted[0]);
}

}  // namespace

Command GetCommand() {
  Command command;
  command.name = "get";
  command.summary = "show objects";
  command.usage = "TYPE[,TYPE...] [NAME...] | TYPE/NAME... [flags]";
  command.flags = {
      {"output", 'o', "FORMAT", "wide, json, yaml or name", "", {"wide", "json", "yaml", "name"}},
      {"watch", 'w', "", "then show every change, until interrupted", "", {}},
      {"all-namespaces", 'A', "", "of every namespace", "", {}},
      {"selector", 'l', "QUERY", "only objects with these labels, e.g. app=web,tier!=db", "", {}},
      {"field-selector",
       0,
       "QUERY",
       "only objects with these fields, e.g. status.phase=Running",
       "",
       {}},
      {"show-labels", 0, "", "labels as the last column", "", {}},
      {"no-headers", 0, "", "rows only", "", {}},
      {"ignore-not-found", 0, "", "a missing object is no error", "", {}}};
  command.examples = {{"muster get pods", "of the current namespace"},
                      {"muster get pytorchjobs,pods -A", "several types, everywhere"},
                      {"muster get node gpu-1 -o yaml", "one whole object"},
                      {"muster get pods -w -l app=web", "follow changes"}};
  command.most_words = kAnyNumber;
  command.exclusive = {
      {kNames, "selector"}, {kNames, "field-selector"}, {kNames, "all-namespaces"}};
  command.names_objects = true;
  command.run = Run;
  return command;
}

}  // namespace muster::cli
