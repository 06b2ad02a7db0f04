#include "serving/model_storage.h"

#include <string>

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::serving {
namespace {

constexpr std::string_view kFile = "file://";
constexpr std::string_view kClaim = "pvc://";

bool HasDotDot(std::string_view path) {
  for (const std::string_view part : Split(path, '/')) {
    if (part == "..") return true;
  }
  return false;
}

// A name with an ending such as ".joblib" is a file, and appears under its own name; "v1.2" is a
// version.
std::string FileNameOf(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const size_t dot = name.rfind('.');
  if (dot == 0 || dot == name.npos) return "";
  const std::string_view ending = name.substr(dot + 1);
  const bool letters = !ending.empty() && ending.find_first_not_of("0123456789") != ending.npos;
  return letters ? std::string(name) : "";
}

std::string TargetOf(std::string_view path) {
  const std::string file = FileNameOf(path);
  return file.empty() ? std::string(kModelDir) : fmt::format("{}/{}", kModelDir, file);
}

std::string_view WithoutSlashes(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  while (path.starts_with('/')) path.remove_prefix(1);
  return path;
}

}  // namespace

Result<ModelMount> MountOf(std::string_view uri) {
  const json::Value base = json::Obj({{"name", kModelVolume}, {"readOnly", true}});
  if (HasDotDot(uri))
    return Error(Reason::kInvalid, "storageUri {}: a path must not contain '..'", uri);
  if (uri.starts_with(kFile)) {
    const std::string path = fmt::format("/{}", WithoutSlashes(uri.substr(kFile.size())));
    if (path == "/") return Error(Reason::kInvalid, "storageUri {}: names no path", uri);
    const char* type = FileNameOf(path).empty() ? "Directory" : "File";
    const json::Value source = json::Obj({{"path", path}, {"type", type}});
    return ModelMount{json::Obj({{"name", kModelVolume}, {"hostPath", source}}),
                      base.Set("mountPath", TargetOf(path))};
  }
  if (uri.starts_with(kClaim)) {
    const std::string_view rest = uri.substr(kClaim.size());
    const size_t slash = rest.find('/');
    const std::string_view claim = rest.substr(0, slash);
    const std::string_view path = slash == rest.npos ? "" : WithoutSlashes(rest.substr(slash));
    if (claim.empty()) return Error(Reason::kInvalid, "storageUri {}: names no claim", uri);
    json::Value mount = base.Set("mountPath", TargetOf(path));
    if (!path.empty()) mount = mount.Set("subPath", path);
    const json::Value source = json::Obj({{"claimName", claim}, {"readOnly", true}});
    return ModelMount{json::Obj({{"name", kModelVolume}, {"persistentVolumeClaim", source}}),
                      mount};
  }
  return Error(Reason::kInvalid,
               "storageUri {}: only file:// (a path on the node) and pvc:// (a volume claim) are "
               "mounted here so far; put the model into a claim",
               uri);
}

}  // namespace muster::serving
