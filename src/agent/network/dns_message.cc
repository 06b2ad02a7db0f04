#include "agent/network/dns_message.h"

#include <algorithm>

#include "base/check.h"
#include "base/strings.h"

namespace muster::agent {

namespace {

constexpr size_t kHeaderBytes = 12;
constexpr uint16_t kFlagReply = 0x8000;
constexpr uint16_t kFlagAuthoritative = 0x0400;
constexpr uint16_t kFlagTruncated = 0x0200;
constexpr uint16_t kFlagRecursionDesired = 0x0100;
constexpr uint16_t kFlagRecursionAvailable = 0x0080;
constexpr uint16_t kOpcodeMask = 0x7800;
constexpr uint16_t kCodeMask = 0x000F;
constexpr std::string_view kPointerToQuestion("\xC0\x0C", 2);
constexpr std::string_view kReverseSuffix = ".in-addr.arpa";

// Reads big-endian numbers and never past the end: `ok` turns false instead.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  uint8_t Byte() {
    if (at_ >= bytes_.size()) {
      ok_ = false;
      return 0;
    }
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  uint16_t Short() {
    const uint16_t high = Byte();
    return static_cast<uint16_t>(high << 8 | Byte());
  }
  std::string_view Take(size_t size) {
    if (size > bytes_.size() - at_) {
      ok_ = false;
      return {};
    }
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  bool ok() const { return ok_; }
  size_t at() const { return at_; }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

void AppendShort(std::string& bytes, uint16_t value) {
  bytes += static_cast<char>(value >> 8);
  bytes += static_cast<char>(value & 0xFF);
}

void AppendLong(std::string& bytes, uint32_t value) {
  AppendShort(bytes, static_cast<uint16_t>(value >> 16));
  AppendShort(bytes, static_cast<uint16_t>(value & 0xFFFF));
}

// A name of plain labels. Dots and odd bytes inside a label cannot name anything of ours; they are
// refused.
bool ReadName(Reader& reader, std::string& name) {
  while (true) {
    const uint8_t length = reader.Byte();
    if (length == 0) return reader.ok();
    if (length > kMaxDnsLabelBytes) return false;  // a pointer, or reserved
    const std::string_view label = reader.Take(length);
    if (!reader.ok() || label.find('.') != std::string_view::npos) return false;
    if (!name.empty()) name += '.';
    name += ToLower(label);
    if (name.size() > kMaxDnsNameBytes) return false;
  }
}

// Any name, which may end in a pointer to another one.
bool SkipName(Reader& reader) {
  constexpr uint8_t kPointer = 0xC0;
  while (reader.ok()) {
    const uint8_t length = reader.Byte();
    if (length == 0) return reader.ok();
    if ((length & kPointer) == kPointer) {
      reader.Byte();
      return reader.ok();
    }
    if (length > kMaxDnsLabelBytes) return false;
    reader.Take(length);
  }
  return false;
}

// Looks for an OPT record among the additional ones. What cannot be read is ignored: EDNS0 is an
// offer.
void ReadEdns(Reader& reader, uint16_t records, DnsQuery& query) {
  for (uint16_t i = 0; i < records && reader.ok(); ++i) {
    std::string owner;
    if (!ReadName(reader, owner)) return;
    const uint16_t type = reader.Short();
    const uint16_t klass = reader.Short();
    reader.Take(4);
    reader.Take(reader.Short());
    if (!reader.ok() || type != dns::kTypeOpt) continue;
    query.edns = true;
    query.udp_reply_bytes = std::clamp<size_t>(klass, kPlainUdpReplyBytes, kMaxUdpReplyBytes);
  }
}

}  // namespace

std::optional<DnsQuery> ParseDnsQuery(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  Reader reader(bytes);
  DnsQuery query;
  query.id = reader.Short();
  const uint16_t flags = reader.Short();
  if ((flags & kFlagReply) != 0) return std::nullopt;
  query.recursion_desired = (flags & kFlagRecursionDesired) != 0;
  const uint16_t questions = reader.Short();
  const uint16_t answers = reader.Short();
  const uint16_t authorities = reader.Short();
  const uint16_t additionals = reader.Short();
  if ((flags & kOpcodeMask) != 0) {
    query.error = DnsCode::kNotImplemented;
    return query;
  }
  query.error = DnsCode::kFormatError;
  if (questions != 1 || !ReadName(reader, query.name)) return query;
  query.type = reader.Short();
  query.klass = reader.Short();
  if (!reader.ok()) return query;
  query.question = bytes.substr(kHeaderBytes, reader.at() - kHeaderBytes);
  query.error = DnsCode::kNoError;
  if (answers == 0 && authorities == 0) ReadEdns(reader, additionals, query);
  return query;
}

std::string MakeDnsQuestion(uint16_t id, const std::string& name, uint16_t type) {
  std::string bytes;
  for (const uint16_t number :
       {id, kFlagRecursionDesired, uint16_t{1}, uint16_t{0}, uint16_t{0}, uint16_t{0}})
    AppendShort(bytes, number);
  bytes += EncodeDnsName(name);
  AppendShort(bytes, type);
  AppendShort(bytes, dns::kClassIn);
  return bytes;
}

std::optional<DnsRecords> ParseDnsRecords(std::string_view bytes, uint16_t type) {
  Reader reader(bytes);
  reader.Short();  // the id
  const uint16_t flags = reader.Short();
  const uint16_t questions = reader.Short();
  const uint16_t answers = reader.Short();
  reader.Take(4);  // of the other sections
  if (!reader.ok() || (flags & kFlagReply) == 0) return std::nullopt;
  DnsRecords found{.code = static_cast<DnsCode>(flags & kCodeMask),
                   .truncated = (flags & kFlagTruncated) != 0};
  for (uint16_t i = 0; i < questions; ++i) {
    if (!SkipName(reader)) return std::nullopt;
    reader.Take(4);
  }
  for (uint16_t i = 0; i < answers && !found.truncated; ++i) {
    if (!SkipName(reader)) return std::nullopt;
    const uint16_t record_type = reader.Short();
    const uint16_t klass = reader.Short();
    const uint32_t ttl_s = uint32_t{reader.Short()} << 16 | reader.Short();
    const std::string_view data = reader.Take(reader.Short());
    if (!reader.ok()) return std::nullopt;
    if (record_type == type && klass == dns::kClassIn)
      found.records.push_back({ttl_s, std::string(data)});
  }
  return found;
}

std::optional<Ipv4> ParseReverseName(std::string_view name) {
  if (!name.ends_with(kReverseSuffix)) return std::nullopt;
  const std::optional<Ipv4> reversed =
      Ipv4::Parse(name.substr(0, name.size() - kReverseSuffix.size()));
  if (!reversed) return std::nullopt;
  return Ipv4{__builtin_bswap32(reversed->value)};
}

bool IsDnsName(std::string_view name) {
  if (name.empty() || name.size() > kMaxDnsNameBytes) return false;
  return std::ranges::all_of(Split(name, '.'), [](std::string_view label) {
    return !label.empty() && label.size() <= kMaxDnsLabelBytes;
  });
}

std::string EncodeDnsName(std::string_view name) {
  CHECK(IsDnsName(name));
  std::string bytes;
  for (const std::string_view label : Split(name, '.')) {
    bytes += static_cast<char>(label.size());
    bytes += label;
  }
  bytes += '\0';
  return bytes;
}

DnsReply::DnsReply(const DnsQuery& query, DnsCode code, bool authoritative)
    : query_(query), code_(code), authoritative_(authoritative) {}

std::string DnsAddress(Ipv4 address) {
  std::string data;
  AppendLong(data, address.value);
  return data;
}

void DnsReply::AddAnswer(std::string_view owner, uint16_t type, uint32_t ttl_s,
                         std::string_view data) {
  CHECK(authorities_ == 0);
  records_ += owner;
  AppendShort(records_, type);
  AppendShort(records_, dns::kClassIn);
  AppendLong(records_, ttl_s);
  AppendShort(records_, static_cast<uint16_t>(data.size()));
  records_ += data;
  ++answers_;
}

void DnsReply::AddA(Ipv4 address, uint32_t ttl_s) {
  AddAnswer(kPointerToQuestion, dns::kTypeA, ttl_s, DnsAddress(address));
}

void DnsReply::AddSrv(uint16_t port, std::string_view target, uint32_t ttl_s) {
  std::string data;
  AppendShort(data, 0);    // priority
  AppendShort(data, 100);  // weight
  AppendShort(data, port);
  AddAnswer(kPointerToQuestion, dns::kTypeSrv, ttl_s, data + EncodeDnsName(target));
}

void DnsReply::AddPtr(std::string_view target, uint32_t ttl_s) {
  AddAnswer(kPointerToQuestion, dns::kTypePtr, ttl_s, EncodeDnsName(target));
}

void DnsReply::AddCname(std::string_view target, uint32_t ttl_s) {
  AddAnswer(kPointerToQuestion, dns::kTypeCname, ttl_s, EncodeDnsName(target));
}

void DnsReply::AddRecordOf(std::string_view owner, uint16_t type, uint32_t ttl_s,
                           std::string_view data) {
  AddAnswer(EncodeDnsName(owner), type, ttl_s, data);
}

void DnsReply::AddSoa(std::string_view zone) {
  std::string data = EncodeDnsName("ns.dns." + std::string(zone));
  data += EncodeDnsName("hostmaster." + std::string(zone));
  // serial, refresh, retry, expire, minimum: the last is for how long "no" may be remembered.
  for (const uint32_t number : {1U, 7200U, 1800U, 86400U, 0U}) AppendLong(data, number);
  records_ += EncodeDnsName(zone);
  AppendShort(records_, dns::kTypeSoa);
  AppendShort(records_, dns::kClassIn);
  AppendLong(records_, 0);
  AppendShort(records_, static_cast<uint16_t>(data.size()));
  records_ += data;
  ++authorities_;
}

std::string DnsReply::Header(bool truncated) const {
  std::string bytes;
  AppendShort(bytes, query_.id);
  uint16_t flags = kFlagReply | kFlagRecursionAvailable | static_cast<uint16_t>(code_);
  if (query_.recursion_desired) flags |= kFlagRecursionDesired;
  if (authoritative_) flags |= kFlagAuthoritative;
  if (truncated) flags |= kFlagTruncated;
  AppendShort(bytes, flags);
  AppendShort(bytes, query_.question.empty() ? 0 : 1);
  AppendShort(bytes, truncated ? 0 : answers_);
  AppendShort(bytes, truncated ? 0 : authorities_);
  AppendShort(bytes, query_.edns ? 1 : 0);
  return bytes + query_.question;
}

std::string DnsReply::Finish(size_t max_bytes) const {
  std::string opt;
  if (query_.edns) {
    opt += '\0';  // the root
    AppendShort(opt, dns::kTypeOpt);
    AppendShort(opt, kMaxUdpReplyBytes);
    AppendLong(opt, 0);
    AppendShort(opt, 0);
  }
  std::string whole = Header(false) + records_ + opt;
  return whole.size() <= max_bytes ? whole : Header(true) + opt;
}

}  // namespace muster::agent
