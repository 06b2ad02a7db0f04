#include "agent/images/image_record.h"

#include <algorithm>

namespace muster::agent {

bool ImageRecord::IsCalled(const ImageReference& reference) const {
  const std::vector<std::string>& list = reference.digest.empty() ? names : digests;
  return std::find(list.begin(), list.end(), reference.Name()) != list.end();
}

ImageConfig ParseImageConfig(const json::Value& config) {
  const json::Value& run = config["config"];
  return {json::ToStrings(run["Entrypoint"]),
          json::ToStrings(run["Cmd"]),
          json::ToStrings(run["Env"]),
          run["User"].Str(),
          run["WorkingDir"].Str(),
          run["StopSignal"].Str()};
}

json::Value ToJson(const ImageConfig& config) {
  return json::Obj({{"Entrypoint", json::Strings(config.entrypoint)},
                    {"Cmd", json::Strings(config.cmd)},
                    {"Env", json::Strings(config.environment)},
                    {"User", config.user},
                    {"WorkingDir", config.working_dir},
                    {"StopSignal", config.stop_signal}});
}

ImageConfig ImageConfigFromJson(const json::Value& value) {
  return ParseImageConfig(json::Obj({{"config", value}}));
}

json::Value ToJson(const ImageRecord& record) {
  return json::Obj({{"id", record.id},
                    {"root", record.root},
                    {"names", json::Strings(record.names)},
                    {"digests", json::Strings(record.digests)},
                    {"blobs", json::Strings(record.blobs)},
                    {"sizeBytes", record.size_bytes},
                    {"diskBytes", record.disk_bytes},
                    {"lastUsed", FormatNanoTime(record.last_used)},
                    {"config", ToJson(record.config)}});
}

ImageRecord ImageRecordFromJson(const json::Value& value) {
  return {value["id"].Str(),
          value["root"].Str(),
          json::ToStrings(value["names"]),
          json::ToStrings(value["digests"]),
          json::ToStrings(value["blobs"]),
          value["sizeBytes"].AsInt(),
          value["diskBytes"].AsInt(),
          ParseTime(value["lastUsed"].AsString()).value_or(Time{}),
          ImageConfigFromJson(value["config"])};
}

}  // namespace muster::agent
