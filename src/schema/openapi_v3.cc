#include "schema/openapi_v3.h"

#include "base/strings.h"
#include "schema/openapi_schemas.h"

namespace muster::schema {
namespace {

constexpr std::string_view kStatusSchema = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
constexpr std::string_view kDeleteOptionsSchema =
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
constexpr std::string_view kPatchSchema = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
constexpr std::string_view kScaleSchema = "io.k8s.api.autoscaling.v1.Scale";

json::Value Parameter(std::string_view in, std::string_view name, std::string_view type,
                      std::string_view description) {
  json::Value parameter =
      json::Obj({{"name", name},
                 {"in", in},
                 {"description", description},
                 {"schema", json::Obj({{"type", type}, {"uniqueItems", true}})}});
  return in == "path" ? parameter.Set("required", true) : parameter;
}

json::Value Query(std::string_view name, std::string_view type, std::string_view description) {
  return Parameter("query", name, type, description);
}

json::Array ListParameters() {
  return {
      Query("labelSelector", "string",
            "Only objects with these labels, such as app=web,tier!=test."),
      Query("fieldSelector", "string",
            "Only objects with these fields, such as status.phase=Running."),
      Query("limit", "integer", "At most so many objects; the answer says how to go on."),
      Query("continue", "string", "Where an earlier answer stopped."),
      Query("resourceVersion", "string", "The revision to read at or watch from."),
      Query("resourceVersionMatch", "string", "How the revision is meant: Exact or NotOlderThan."),
      Query("timeoutSeconds", "integer", "When to end a list or a watch."),
      Query("watch", "boolean", "Send changes as they happen."),
      Query("allowWatchBookmarks", "boolean", "Send bookmarks of the revision while watching."),
      Query("sendInitialEvents", "boolean", "Begin a watch with the present objects.")};
}

json::Array WriteParameters() {
  return {Query("dryRun", "string", "All: do everything but store the result."),
          Query("fieldManager", "string", "Who writes, for the record of field owners."),
          Query("fieldValidation", "string",
                "What to do with unknown and repeated fields: Strict, Warn or Ignore.")};
}

json::Array DeleteParameters() {
  return {Query("dryRun", "string", "All: do everything but delete."),
          Query("gracePeriodSeconds", "integer",
                "Seconds that the object gets to end; 0 ends it at once."),
          Query("orphanDependents", "boolean", "Deprecated, see propagationPolicy."),
          Query("propagationPolicy", "string",
                "What becomes of dependents: Background, Foreground or Orphan.")};
}

json::Value Content(const std::vector<std::string_view>& types, const json::Value& schema) {
  json::Object content;
  for (const std::string_view type : types)
    content.emplace_back(std::string(type), json::Obj({{"schema", schema}}));
  return json::Obj({{"content", std::move(content)}});
}

// One resource's path items.
class Paths {
 public:
  Paths(const OpenApiKind& served, json::Object& out) : kind_(*served.kind), out_(out) {
    component_ = ComponentRef(ComponentName(kind_));
    gvk_ = GroupVersionKind(kind_.group, kind_.version, kind_.kind);
    body_types_ = {"application/json", "application/yaml"};
    if (!kind_.custom) body_types_.push_back("application/vnd.kubernetes.protobuf");
    root_ = "/" + OpenApiPath(kind_.group, kind_.version) + "/";
    collection_ = root_ + (kind_.namespaced ? "namespaces/{namespace}/" : "") + kind_.plural;
  }

  void AddAll(const std::vector<Subresource>& subresources) {
    if (kind_.create_only) {
      AddPath(collection_, json::Obj({{"post", Creation()}}), kind_.namespaced, false);
      return;
    }
    AddCollection();
    if (kind_.computed) return AddItem(collection_ + "/{name}", "", component_, gvk_, {"get"});
    AddItem(collection_ + "/{name}", "", component_, gvk_, {"get", "put", "patch", "delete"});
    if (kind_.status_subresource)
      AddItem(collection_ + "/{name}/status", "Status", component_, gvk_, {"get", "put", "patch"});
    if (kind_.scale != nullptr) {
      AddItem(collection_ + "/{name}/scale", "Scale", ComponentRef(kScaleSchema),
              GroupVersionKind("autoscaling", "v1", "Scale"), {"get", "put", "patch"});
    }
    for (const Subresource& subresource : subresources) AddSubresource(subresource);
  }

 private:
  void AddCollection() {
    const json::Value list = ComponentRef(ComponentName(kind_) + "List");
    json::Value item = json::Obj(
        {{"get", Operation("list", "list", "List", ListParameters(), nullptr, list, gvk_)}});
    if (!kind_.computed) {
      item = item.Set("post", Creation())
                 .Set("delete", Operation("delete", "deletecollection", "Collection",
                                          ListParameters(), ComponentRef(kDeleteOptionsSchema),
                                          ComponentRef(kStatusSchema), gvk_));
    }
    AddPath(collection_, item, kind_.namespaced, false);
    if (kind_.namespaced) {
      AddPath(root_ + kind_.plural,
              json::Obj({{"get", Operation("list", "list", "ForAllNamespaces", ListParameters(),
                                           nullptr, list, gvk_)}}),
              false, false);
    }
  }

  json::Value Creation() const {
    return Operation("create", "post", "", WriteParameters(), component_, component_, gvk_);
  }

  void AddItem(const std::string& path, std::string_view suffix, const json::Value& component,
               const json::Value& gvk, const std::vector<std::string_view>& verbs) {
    json::Object item;
    for (const std::string_view verb : verbs) {
      if (verb == "get") {
        item.emplace_back("get", Operation("read", "get", suffix, {}, nullptr, component, gvk));
      } else if (verb == "put") {
        item.emplace_back("put", Operation("replace", "put", suffix, WriteParameters(), component,
                                           component, gvk));
      } else if (verb == "post") {
        item.emplace_back("post", Operation("create", "post", suffix, WriteParameters(), component,
                                            component, gvk));
      } else if (verb == "patch") {
        item.emplace_back("patch", Patch(suffix, component, gvk));
      } else if (verb == "delete") {
        item.emplace_back("delete", Operation("delete", "delete", suffix, DeleteParameters(),
                                              ComponentRef(kDeleteOptionsSchema),
                                              ComponentRef(kStatusSchema), gvk));
      }
    }
    AddPath(path, std::move(item), kind_.namespaced, true);
  }

  void AddSubresource(const Subresource& subresource) {
    const std::vector<std::string_view> verbs(subresource.verbs.begin(), subresource.verbs.end());
    std::string suffix = subresource.name;
    if (!suffix.empty()) suffix[0] = static_cast<char>(suffix[0] & ~0x20);
    const json::Value component = subresource.kind.empty() ? json::Obj({{"type", "string"}})
                                                           : ComponentRef(BodySchema(subresource));
    const json::Value gvk =
        subresource.kind.empty()
            ? gvk_
            : GroupVersionKind(subresource.group, subresource.version, subresource.kind);
    AddItem(collection_ + "/{name}/" + subresource.name, suffix, component, gvk, verbs);
  }

  // "io.k8s.api.core.v1.Binding".
  static std::string BodySchema(const Subresource& subresource) {
    const std::string group = subresource.group.empty()
                                  ? "core"
                                  : subresource.group.substr(0, subresource.group.find('.'));
    return "io.k8s.api." + group + "." + subresource.version + "." + subresource.kind;
  }

  json::Value Patch(std::string_view suffix, const json::Value& component,
                    const json::Value& gvk) const {
    json::Array parameters = WriteParameters();
    parameters.push_back(
        Query("force", "boolean", "Take fields from other owners (server-side apply)."));
    json::Value patch =
        Operation("patch", "patch", suffix, std::move(parameters), nullptr, component, gvk);
    std::vector<std::string_view> types = {"application/json-patch+json",
                                           "application/merge-patch+json"};
    if (!kind_.custom) types.push_back("application/strategic-merge-patch+json");
    types.push_back("application/apply-patch+yaml");
    return patch.Set("requestBody",
                     Content(types, ComponentRef(kPatchSchema)).Set("required", true));
  }

  // `word` is the verb of the operation's name, `action` that of x-kubernetes-action; null body:
  // none.
  json::Value Operation(std::string_view word, std::string_view action, std::string_view suffix,
                        json::Array parameters, const json::Value& body, const json::Value& answer,
                        const json::Value& gvk) const {
    json::Object out;
    out.emplace_back("operationId", std::string(word) + Identifier() +
                                        (kind_.namespaced ? "Namespaced" : "") + kind_.kind +
                                        std::string(suffix));
    out.emplace_back("tags", json::Strings({Tag()}));
    if (!parameters.empty()) out.emplace_back("parameters", std::move(parameters));
    if (!body.IsNull()) out.emplace_back("requestBody", Content(body_types_, body));
    out.emplace_back(
        "responses",
        json::Obj({{"200", Content({"application/json"}, answer).Set("description", "OK")}}));
    out.emplace_back("x-kubernetes-action", action);
    out.emplace_back("x-kubernetes-group-version-kind", gvk);
    return out;
  }

  void AddPath(const std::string& path, json::Value item, bool with_namespace, bool with_name) {
    json::Array parameters;
    if (with_name)
      parameters.push_back(Parameter("path", "name", "string", "The name of the object."));
    if (with_namespace)
      parameters.push_back(
          Parameter("path", "namespace", "string", "The namespace of the object."));
    if (!parameters.empty()) item = item.Set("parameters", std::move(parameters));
    out_.emplace_back(path, std::move(item));
  }

  // "KubeflowOrgV1", "CoreV1".
  std::string Identifier() const {
    std::string out;
    bool start = true;
    for (const char c : Tag()) {
      if (c == '_' || c == '.' || c == '-') {
        start = true;
      } else {
        out += start && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        start = false;
      }
    }
    return out;
  }
  std::string Tag() const {
    return (kind_.group.empty() ? "core" : kind_.group) + "_" + kind_.version;
  }

  const Kind& kind_;
  json::Object& out_;
  json::Value component_, gvk_;
  std::vector<std::string_view> body_types_;
  std::string root_, collection_;
};

}  // namespace

std::string OpenApiPath(std::string_view group, std::string_view version) {
  if (group.empty()) return "api/" + std::string(version);
  return "apis/" + std::string(group) + "/" + std::string(version);
}

json::Value OpenApiV3(std::string_view group, std::string_view version,
                      const std::vector<OpenApiKind>& kinds) {
  OpenApiSchemas schemas;
  json::Object paths;
  for (const OpenApiKind& served : kinds) {
    schemas.AddKind(*served.kind);
    if (served.kind->scale != nullptr) schemas.AddNamed(kScaleSchema);
    for (const Subresource& subresource : served.subresources) {
      if (subresource.kind == "Binding") schemas.AddNamed("io.k8s.api.core.v1.Binding");
      if (subresource.kind == "Eviction") schemas.AddNamed("io.k8s.api.policy.v1.Eviction");
      if (subresource.kind == "TokenRequest") {
        schemas.AddNamed("io.k8s.api.authentication.v1.TokenRequest");
      }
      if (subresource.kind == "Scale") schemas.AddNamed(kScaleSchema);
    }
    Paths(served, paths).AddAll(served.subresources);
  }
  schemas.AddNamed(kStatusSchema);
  schemas.AddNamed(kDeleteOptionsSchema);
  json::Value components = schemas.Take();
  components = components.Set(
      kPatchSchema, json::Obj({{"description", "A patch in the form that its media type says."},
                               {"type", "object"}}));
  return json::Obj({{"openapi", "3.0.0"},
                    {"info", json::Obj({{"title", "muster " + OpenApiPath(group, version)},
                                        {"version", "v1.32.0"}})},
                    {"paths", std::move(paths)},
                    {"components", json::Obj({{"schemas", std::move(components)}})}});
}

}  // namespace muster::schema
