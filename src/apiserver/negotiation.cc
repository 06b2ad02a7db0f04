#include "apiserver/negotiation.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "apiserver/errors.h"
#include "base/strings.h"
#include "schema/protobuf_codec.h"

namespace muster::apiserver {
namespace {

double Quality(const MediaType& type) {
  const std::string q(type.Parameter("q"));
  return q.empty() ? 1.0 : std::strtod(q.c_str(), nullptr);
}

// nullopt for what is never written.
std::optional<Encoding> EncodingOf(std::string_view type) {
  if (type == "application/json" || type == "application/*" || type == "*/*")
    return Encoding::kJson;
  if (type == "application/yaml") return Encoding::kYaml;
  if (type == schema::kProtobufMediaType) return Encoding::kProtobuf;
  return std::nullopt;
}

}  // namespace

std::string_view MediaType::Parameter(std::string_view name) const {
  for (const auto& [key, value] : parameters) {
    if (key == name) return value;
  }
  return {};
}

MediaType ParseMediaType(std::string_view text) {
  MediaType result;
  const std::vector<std::string_view> parts = Split(text, ';');
  result.type = ToLower(Trim(parts[0]));
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    if (equals == std::string_view::npos) continue;
    std::string_view value = Trim(parts[i].substr(equals + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    result.parameters.emplace_back(ToLower(Trim(parts[i].substr(0, equals))), value);
  }
  return result;
}

std::vector<MediaType> ParseAccept(std::string_view header) {
  std::vector<MediaType> types;
  for (std::string_view one : SplitNonEmpty(header, ',')) {
    if (!Trim(one).empty()) types.push_back(ParseMediaType(one));
  }
  std::stable_sort(types.begin(), types.end(),
                   [](const MediaType& a, const MediaType& b) { return Quality(a) > Quality(b); });
  return types;
}

Result<Negotiated> Negotiate(std::string_view accept, bool protobuf) {
  if (Trim(accept).empty()) return Negotiated{};
  for (const MediaType& type : ParseAccept(accept)) {
    const std::optional<Encoding> encoding = EncodingOf(type.type);
    if (!encoding) continue;
    Negotiated answer;
    answer.encoding = *encoding;
    const bool is_protobuf = *encoding == Encoding::kProtobuf;
    const std::string_view as = type.Parameter("as");
    if (as.empty()) {
      if (is_protobuf && !protobuf) continue;
      return answer;
    }
    if (type.Parameter("g") != "meta.k8s.io") continue;
    answer.meta_version = type.Parameter("v");
    if (answer.meta_version != "v1" && answer.meta_version != "v1beta1") continue;
    if (as == "Table" && !is_protobuf) {
      answer.form = AnswerForm::kTable;
    } else if (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") {
      answer.form = AnswerForm::kPartialMetadata;
    } else {
      continue;
    }
    return answer;
  }
  return Error(NotAcceptableError(protobuf));
}

bool PrefersProtobuf(std::string_view accept) {
  if (accept.find(schema::kProtobufMediaType) == std::string_view::npos) return false;
  for (const MediaType& type : ParseAccept(accept)) {
    if (!type.Parameter("as").empty()) continue;
    if (const std::optional<Encoding> encoding = EncodingOf(type.type))
      return *encoding == Encoding::kProtobuf;
  }
  return false;
}

}  // namespace muster::apiserver
