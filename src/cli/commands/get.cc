// muster get: objects as the server's tables, or whole.

#include <utility>

#include "base/strings.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/object_printer.h"
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
    const bool whole =
        options_.output == "json" || options_.output == "yaml" || options_.output == "name";
    return whole ? PrintWhole(wanted) : PrintTables(wanted);
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
  Result<std::string> WatchOnce(const Wanted& wanted, const std::string& version,
                                TablePrinter& printer);
  void PrintEvent(const Wanted& wanted, const client::WatchFrame& frame, TablePrinter& printer);

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

// Until the server ends the stream; the version to go on from.
Result<std::string> Getter::WatchOnce(const Wanted& wanted, const std::string& version,
                                      TablePrinter& printer) {
  net::Query query;
  query.Add("watch", "true");
  query.Add("resourceVersion", version);
  GetOptions selection = options_;
  if (!wanted.names.empty()) selection.field_selector = "metadata.name=" + wanted.names[0];
  const bool whole =
      options_.output == "json" || options_.output == "yaml" || options_.output == "name";
  net::Request request{
      .method = "GET",
      .target = PathFor(wanted.resource, NamespaceOf(wanted.resource), "", selection, query)};
  request.headers.Add("Accept", whole ? "application/json" : kTableAccept);
  std::string last = version;
  Status end;
  int http_status = 200;
  client::WatchDecoder decoder;
  std::unique_ptr<client::StreamHandle> stream;
  session_.RunUntilDone([&](std::function<void()> done) {
    client::StreamCallbacks callbacks;
    callbacks.on_head = [&](int code, const net::Headers&) { http_status = code; };
    callbacks.on_data = [&, done](std::string_view bytes) {
      if (http_status != 200) return;
      decoder.Feed(bytes);
      while (true) {
        Result<std::optional<client::WatchFrame>> frame = decoder.Next();
        if (!frame) {
          end = frame.error();
          return done();
        }
        if (!*frame) return;
        if ((*frame)->type == "ERROR") {
          end = Status(Reason::kExpired, (*frame)->object["message"].Str());
          return done();
        }
        const json::Value& object = (*frame)->object;
        const json::Value& row = object["rows"].At(0)["object"];
        const json::Value& seen = row.IsNull() ? object : row;
        if (seen["metadata"]["resourceVersion"].IsString())
          last = seen["metadata"]["resourceVersion"].Str();
        PrintEvent(wanted, **frame, printer);
      }
    };
    callbacks.on_end = [&, done](Status status) {
      end = std::move(status);
      done();
    };
    stream = session_.client().RawStream(std::move(request), std::move(callbacks));
  });
  stream.reset();
  if (!end.ok()) return Error(end);
  if (http_status != 200)
    return Error(Reason::kServiceUnavailable, "the server refused to watch ({})", http_status);
  return last;
}

Result<int> Getter::Watch(const Wanted& wanted) {
  if (wanted.names.size() > 1)
    return Error(Reason::kInvalid, "--watch follows one object or one collection");
  GetOptions selection = options_;
  if (!wanted.names.empty()) selection.field_selector = "metadata.name=" + wanted.names[0];
  const std::string path = PathFor(wanted.resource, NamespaceOf(wanted.resource), "", selection);
  TablePrinter printer(console_, TableOptionsFor(wanted.resource, false));
  const bool whole =
      options_.output == "json" || options_.output == "yaml" || options_.output == "name";
  ASSIGN_OR_RETURN(json::Value first,
                   session_.GetJson(path, whole ? "application/json" : kTableAccept));
  std::string version = first["metadata"]["resourceVersion"].Str();
  if (whole) {
    for (const json::Value& item : first["items"].items())
      PrintEvent(wanted, {"ADDED", item}, printer);
  } else {
    printer.Add(first);
  }
  while (true) {
    ASSIGN_OR_RETURN(version, WatchOnce(wanted, version, printer));
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
  command.names_objects = true;
  command.run = Run;
  return command;
}

}  // namespace muster::cli
