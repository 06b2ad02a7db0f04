#include "agent/shim/cri_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "agent/runtime/files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

// Numbers of the rotated files beside `path`, ascending.
std::vector<uint64_t> RotatedNumbers(const std::string& path) {
  std::vector<uint64_t> numbers;
  const size_t slash = path.find_last_of('/');
  const std::string prefix = path.substr(slash + 1) + ".";
  for (const std::string& name : ListDir(path.substr(0, slash))) {
    if (!name.starts_with(prefix)) continue;
    if (const auto number = ParseInt(std::string_view(name).substr(prefix.size()));
        number && *number >= 0) {
      numbers.push_back(static_cast<uint64_t>(*number));
    }
  }
  return numbers;
}

}  // namespace

std::string RotatedLogPath(const std::string& path, uint64_t number) {
  return fmt::format("{}.{:020}", path, number);
}

CriLogWriter::CriLogWriter(std::string path, UniqueFd fd, size_t size, size_t max_bytes,
                           int max_files)
    : path_(std::move(path)),
      fd_(std::move(fd)),
      size_(size),
      max_bytes_(max_bytes),
      max_files_(max_files) {}

Result<CriLogWriter> CriLogWriter::Open(const std::string& path, size_t max_bytes, int max_files) {
  RETURN_IF_ERROR(MakeDirs(path.substr(0, path.find_last_of('/'))));
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
  if (!fd.valid()) return SystemError("open", path, errno);
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return SystemError("stat", path, errno);
  CriLogWriter writer(path, std::move(fd), static_cast<size_t>(info.st_size), max_bytes, max_files);
  if (const auto numbers = RotatedNumbers(path); !numbers.empty())
    writer.rotations_ = numbers.back() + 1;
  return writer;
}

void CriLogWriter::Append(std::string& block, Stream stream, char tag, std::string_view text,
                          Time now) const {
  block += FormatNanoTime(now);
  block += stream == Stream::kStdout ? " stdout " : " stderr ";
  block += tag;
  block += ' ';
  block += text;
  block += '\n';
}

void CriLogWriter::Feed(Stream stream, std::string_view bytes, Time now) {
  std::string& partial = partial_[static_cast<int>(stream)];
  std::string block;
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const size_t room = kMaxCriLineBytes - partial.size();
    const size_t take = std::min(newline == std::string_view::npos ? bytes.size() : newline, room);
    partial += bytes.substr(0, take);
    bytes.remove_prefix(take);
    if (!bytes.empty() && bytes.front() == '\n') {
      Append(block, stream, 'F', partial, now);
      partial.clear();
      bytes.remove_prefix(1);
    } else if (partial.size() >= kMaxCriLineBytes && !bytes.empty()) {
      Append(block, stream, 'P', partial, now);
      partial.clear();
    }
  }
  if (!block.empty()) WriteBlock(block);
}

void CriLogWriter::Finish(Time now) {
  std::string block;
  for (Stream stream : {Stream::kStdout, Stream::kStderr}) {
    std::string& partial = partial_[static_cast<int>(stream)];
    if (!partial.empty()) Append(block, stream, 'F', partial, now);
    partial.clear();
  }
  if (!block.empty()) WriteBlock(block);
}

void CriLogWriter::WriteBlock(std::string_view block) {
  if (size_ > 0 && size_ + block.size() > max_bytes_) Rotate();
  size_ += block.size();
  while (!block.empty()) {
    const ssize_t n = write(fd_.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    block.remove_prefix(static_cast<size_t>(n));
  }
}

void CriLogWriter::Rotate() {
  if (rename(path_.c_str(), RotatedLogPath(path_, rotations_).c_str()) != 0) return;
  UniqueFd fresh(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
  if (!fresh.valid()) return;
  fd_ = std::move(fresh);
  size_ = 0;
  ++rotations_;
  std::vector<uint64_t> numbers = RotatedNumbers(path_);
  for (size_t i = 0; i + static_cast<size_t>(max_files_) - 1 < numbers.size(); ++i) {
    unlink(RotatedLogPath(path_, numbers[i]).c_str());
  }
}

std::string LastLogText(const std::string& path) {
  constexpr size_t kTailBytes = 2 * kMaxCriLineBytes;
  const Result<std::string> tail = ReadTail(path, kTailBytes);
  if (!tail) return "";
  std::vector<std::string_view> lines = SplitNonEmpty(*tail, '\n');
  const size_t from = lines.size() - std::min(lines.size(), kMaxMessageLogLines);
  std::string out;
  for (size_t i = from; i < lines.size(); ++i) {
    // TIME STREAM TAG TEXT; the first one may have lost its beginning.
    const size_t stream = lines[i].find(" std");
    const size_t tag = stream == std::string_view::npos ? stream : lines[i].find(' ', stream + 1);
    if (tag == std::string_view::npos || lines[i].size() < tag + 3) continue;
    out += lines[i].substr(std::min(tag + 3, lines[i].size()));
    if (lines[i][tag + 1] == 'F') out += '\n';
  }
  if (out.size() > kMaxMessageLogBytes) out.erase(0, out.size() - kMaxMessageLogBytes);
  return out;
}

}  // namespace muster::agent
