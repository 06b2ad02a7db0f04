#include "net/http1_write.h"

#include <ctime>

#include "base/strings.h"

namespace muster::net {
namespace {

void AppendClean(std::string& out, std::string_view text) {
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
}

// The formatted date of the current second.
std::string_view DateNow() {
  thread_local int64_t second = -1;
  thread_local std::string text;
  Time now = RealClock().Wall();
  int64_t current = std::chrono::duration_cast<seconds>(now.time_since_epoch()).count();
  if (current != second) {
    second = current;
    text = HttpDate(now);
  }
  return text;
}

bool IsHopByHop(std::string_view name) {
  return EqualsIgnoreCase(name, "Connection") || EqualsIgnoreCase(name, "Transfer-Encoding") ||
         EqualsIgnoreCase(name, "Keep-Alive");
}

}  // namespace

std::string HttpDate(Time time) {
  time_t t = std::chrono::duration_cast<seconds>(time.time_since_epoch()).count();
  tm parts{};
  gmtime_r(&t, &parts);
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[parts.tm_wday], parts.tm_mday,
                     kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min,
                     parts.tm_sec);
}

void AppendHeader(std::string& out, std::string_view name, std::string_view value) {
  AppendClean(out, name);
  out += ": ";
  AppendClean(out, value);
  out += "\r\n";
}

void AppendResponseHead(std::string& out, int status, const Headers& headers, bool upgrade) {
  out += "HTTP/1.1 ";
  out += std::to_string(status);
  out += ' ';
  out += StatusText(status);
  out += "\r\n";
  if (!upgrade && !headers.Has("Date")) AppendHeader(out, "Date", DateNow());
  for (const auto& [name, value] : headers.list()) {
    if (upgrade || !IsHopByHop(name)) AppendHeader(out, name, value);
  }
}

void AppendRequestHead(std::string& out, const Request& request) {
  AppendClean(out, request.method);
  out += ' ';
  AppendClean(out, request.target);
  out += " HTTP/1.1\r\n";
  for (const auto& [name, value] : request.headers.list()) AppendHeader(out, name, value);
}

void AppendChunkHead(std::string& out, size_t size) { out += fmt::format("{:x}\r\n", size); }

}  // namespace muster::net
