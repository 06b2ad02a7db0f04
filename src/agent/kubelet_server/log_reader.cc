#include "agent/kubelet_server/log_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "agent/runtime/files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

// The rotated files of `path`, oldest first, then `path`.
std::vector<std::string> FilesOf(const std::string& path) {
  std::vector<std::string> files;
  const size_t slash = path.find_last_of('/');
  const std::string prefix = path.substr(slash + 1) + ".";
  for (const std::string& name : ListDir(path.substr(0, slash))) {
    if (name.starts_with(prefix)) files.push_back(path.substr(0, slash + 1) + name);
  }
  files.push_back(path);
  return files;
}

// Where the last `lines` lines of the file begin; `found` is how many there are, at most `lines`.
Result<off_t> TailStart(int fd, int64_t lines, int64_t& found) {
  found = 0;
  struct stat info = {};
  if (fstat(fd, &info) != 0) return SystemError("stat", "a log", errno);
  off_t end = info.st_size;
  std::string block(64 * 1024, '\0');
  bool at_last_newline = true;
  while (end > 0 && found < lines) {
    const size_t size = std::min<size_t>(block.size(), static_cast<size_t>(end));
    const ssize_t n = pread(fd, block.data(), size, end - static_cast<off_t>(size));
    if (n != static_cast<ssize_t>(size)) return SystemError("read", "a log", errno);
    for (size_t i = size; i > 0; --i) {
      if (block[i - 1] != '\n') continue;
      if (!at_last_newline && ++found == lines)
        return end - static_cast<off_t>(size) + static_cast<off_t>(i);
      at_last_newline = false;
    }
    end -= static_cast<off_t>(size);
  }
  if (info.st_size > 0 && found < lines) ++found;
  return 0;
}

}  // namespace

std::optional<int> LatestLogAttempt(const std::string& container_log_dir) {
  std::optional<int> latest;
  for (const std::string& name : ListDir(container_log_dir)) {
    if (!name.ends_with(".log")) continue;
    const auto number = ParseInt(std::string_view(name).substr(0, name.size() - 4));
    if (number) latest = std::max(latest.value_or(0), static_cast<int>(*number));
  }
  return latest;
}

LogReader::LogReader(std::string path, const LogOptions& options)
    : path_(std::move(path)),
      timestamps_(options.timestamps),
      since_(options.since),
      left_(options.limit_bytes) {}

Status LogReader::OpenFile(const std::string& path) {
  fd_.Reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd_.valid()) return SystemError("open", path, errno);
  file_ = path;
  return Status::Ok();
}

Result<LogReader> LogReader::Open(const std::string& path, const LogOptions& options) {
  LogReader reader(path, options);
  std::vector<std::string> files = FilesOf(path);
  size_t first = 0;
  off_t offset = 0;
  if (options.tail_lines) {
    int64_t wanted = std::max<int64_t>(*options.tail_lines, 0);
    first = files.size();
    while (first > 0 && (wanted > 0 || first == files.size())) {
      --first;
      RETURN_IF_ERROR(reader.OpenFile(files[first]));
      int64_t found = 0;
      if (wanted == 0) {
        offset = lseek(reader.fd_.get(), 0, SEEK_END);
        break;
      }
      ASSIGN_OR_RETURN(offset, TailStart(reader.fd_.get(), wanted, found));
      wanted -= found;
    }
  }
  RETURN_IF_ERROR(reader.OpenFile(files[first]));
  if (lseek(reader.fd_.get(), offset, SEEK_SET) < 0) return SystemError("seek", path, errno);
  reader.later_.assign(files.begin() + static_cast<std::ptrdiff_t>(first) + 1, files.end());
  return reader;
}

// True if there is another file after the one at whose end we are.
bool LogReader::NextFile() {
  if (!later_.empty()) {
    const std::string next = later_.front();
    later_.erase(later_.begin());
    return OpenFile(next).ok() || NextFile();
  }
  // Rotated under us: what we hold open is now a file with a number; those after it are new.
  struct stat held = {}, current = {};
  if (fstat(fd_.get(), &held) != 0 || stat(path_.c_str(), &current) != 0 ||
      held.st_ino == current.st_ino)
    return false;
  std::vector<std::string> files = FilesOf(path_);
  size_t position = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    struct stat info = {};
    if (stat(files[i].c_str(), &info) == 0 && info.st_ino == held.st_ino) position = i + 1;
  }
  later_.assign(files.begin() + static_cast<std::ptrdiff_t>(position), files.end());
  return !later_.empty() && NextFile();
}

// "TIME STREAM TAG TEXT" -> text.
void LogReader::Convert(std::string_view line, std::string& out) {
  const size_t time_end = line.find(' ');
  const size_t stream_end =
      time_end == std::string_view::npos ? time_end : line.find(' ', time_end + 1);
  const size_t tag_end =
      stream_end == std::string_view::npos ? stream_end : line.find(' ', stream_end + 1);
  if (tag_end == std::string_view::npos) return;  // not ours
  const std::string_view time = line.substr(0, time_end);
  if (since_) {
    const auto parsed = ParseTime(time);
    if (!parsed || *parsed < *since_) return;
  }
  const bool partial = line.substr(stream_end + 1, 1) == "P";
  std::string text;
  if (timestamps_ && !in_line_) text = std::string(time) + " ";
  text += line.substr(tag_end + 1);
  if (!partial) text += '\n';
  in_line_ = partial;
  if (left_) {
    if (static_cast<int64_t>(text.size()) > *left_)
      text.resize(static_cast<size_t>(std::max<int64_t>(*left_, 0)));
    *left_ -= static_cast<int64_t>(text.size());
  }
  out += text;
}

Result<bool> LogReader::Read(std::string& out) {
  std::string buffer(64 * 1024, '\0');
  const size_t start = out.size();
  while (out.size() - start < kLogChunkBytes && !LimitReached()) {
    const ssize_t n = read(fd_.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("read", file_, errno);
    if (n == 0) {
      if (!NextFile()) return false;
      continue;
    }
    carry_.append(buffer, 0, static_cast<size_t>(n));
    size_t at = 0;
    for (size_t newline = carry_.find('\n'); newline != std::string::npos && !LimitReached();
         newline = carry_.find('\n', at)) {
      Convert(std::string_view(carry_).substr(at, newline - at), out);
      at = newline + 1;
    }
    carry_.erase(0, at);
  }
  return !LimitReached();
}

}  // namespace muster::agent
