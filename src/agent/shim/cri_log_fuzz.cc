// A container's output, fed in pieces to the log writer, comes back from the log files: per stream
// byte for byte, whatever was rotated, and as `kubectl logs` reads it, with a tail and a limit.
//
// Input: a byte for the size of a file, then pieces: a byte that chooses the stream and how often
// the piece is repeated, a byte for its length, its bytes.

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "agent/kubelet_server/log_reader.h"
#include "agent/shim/cri_log.h"
#include "base/check.h"
#include "base/fuzz_test_support.h"
#include "base/strings.h"

namespace {

using muster::agent::CriLogWriter;
using muster::agent::LogOptions;
using muster::agent::LogReader;
namespace fs = std::filesystem;

constexpr int kMaxFiles = 10'000;  // no rotated file goes
constexpr size_t kMaxFedBytes = 200'000;

// One folder for the process, emptied before each input.
const std::string& FreshFolder() {
  static const std::string folder = [] {
    std::string pattern = fs::temp_directory_path() / "cri_log_fuzz_XXXXXX";
    CHECK(mkdtemp(pattern.data()) != nullptr);
    return pattern;
  }();
  fs::remove_all(folder);
  fs::create_directory(folder);
  return folder;
}

std::string Slurp(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// All files in order, as text.
std::string AllRecords(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  // "0.log.<number>" by number, "0.log" last.
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    return (a.filename() == "0.log") != (b.filename() == "0.log") ? b.filename() == "0.log" : a < b;
  });
  std::string records;
  for (const fs::path& file : files) records += Slurp(file);
  return records;
}

struct Logged {
  std::string of_stream[2];  // what each stream said
  std::string text;          // all records in order, as a reader shows them
  size_t records = 0;
};

Logged ReadRecords(std::string_view records) {
  Logged logged;
  while (!records.empty()) {
    const std::string_view line = records.substr(0, records.find('\n'));
    CHECK(line.size() < records.size());  // every record ends in a newline
    records.remove_prefix(line.size() + 1);
    const size_t space = line.find(' ');
    CHECK(muster::ParseTime(line.substr(0, space)).has_value());
    const std::string_view rest = line.substr(space + 1);
    CHECK(rest.starts_with("stdout ") || rest.starts_with("stderr "));
    CHECK(rest[7] == 'F' || rest[7] == 'P');
    const std::string_view text = rest.substr(9);
    CHECK(text.size() <= muster::agent::kMaxCriLineBytes);
    CHECK(rest[7] == 'F' || text.size() == muster::agent::kMaxCriLineBytes);
    const std::string said = std::string(text) + (rest[7] == 'F' ? "\n" : "");
    logged.of_stream[rest.starts_with("stderr ") ? 1 : 0] += said;
    logged.text += said;
    ++logged.records;
  }
  return logged;
}

std::string Show(const std::string& path, const LogOptions& options) {
  muster::Result<LogReader> reader = LogReader::Open(path, options);
  CHECK(reader.has_value());
  std::string out;
  while (true) {
    const muster::Result<bool> more = reader->Read(out);
    CHECK(more.has_value());
    if (!*more) return out;
  }
}

void CheckReader(const std::string& path, const Logged& logged, size_t number) {
  CHECK(Show(path, {}) == logged.text);
  LogOptions limited;
  limited.limit_bytes = static_cast<int64_t>(number);
  CHECK(Show(path, limited) == logged.text.substr(0, number));
  LogOptions tail;
  tail.tail_lines = static_cast<int64_t>(number);
  const std::string shown = Show(path, tail);
  CHECK(logged.text.ends_with(shown));
  CHECK(number < logged.records || shown == logged.text);
  CHECK(number > 0 || shown.empty());
}

}  // namespace

FUZZ_TARGET(cri_log, input) {
  muster::FuzzInput bytes(input);
  const std::string& folder = FreshFolder();
  const std::string path = folder + "/0.log";
  const size_t max_file_bytes = size_t{200} << (bytes.Byte() % 12);
  muster::Result<CriLogWriter> writer = CriLogWriter::Open(path, max_file_bytes, kMaxFiles);
  CHECK(writer.has_value());
  std::string fed[2];
  while (!bytes.empty() && fed[0].size() + fed[1].size() < kMaxFedBytes) {
    const uint8_t choice = bytes.Byte();
    const std::string_view piece = bytes.Take(bytes.Byte());
    const size_t repeat = size_t{1} << (choice >> 4);
    std::string text;
    for (size_t i = 0; i < repeat && text.size() < kMaxFedBytes; ++i) text += piece;
    fed[choice & 1] += text;
    writer->Feed(static_cast<CriLogWriter::Stream>(choice & 1), text, muster::Time{});
    if ((choice & 6) != 6) continue;
    // The shim starts again and goes on with the file.
    writer->Finish(muster::Time{});
    for (std::string& one : fed)
      if (!one.empty() && one.back() != '\n') one += '\n';
    writer = CriLogWriter::Open(path, max_file_bytes, kMaxFiles);
    CHECK(writer.has_value());
  }
  writer->Finish(muster::Time{});
  const Logged logged = ReadRecords(AllRecords(folder));
  for (int stream : {0, 1}) {
    if (!fed[stream].empty() && fed[stream].back() != '\n') fed[stream] += '\n';
    CHECK(logged.of_stream[stream] == fed[stream]);
  }
  CheckReader(path, logged, input.size() % 64);
}
