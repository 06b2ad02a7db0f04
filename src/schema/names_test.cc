#include "schema/names.h"

#include <gtest/gtest.h>

namespace muster::schema {
namespace {

Problems Of(NameCheck check, std::string_view text) {
  Problems problems;
  check(text, problems);
  return problems;
}

TEST(Names, AcceptWhatUpstreamAccepts) {
  for (const char* name : {"a", "1", "a-b", "0a9", "a1"})
    EXPECT_TRUE(Of(CheckDns1123Label, name).empty()) << name;
  for (const char* name : {"a.b", "example.com", "1.2.3", "a-b.c-d"})
    EXPECT_TRUE(Of(CheckDns1123Subdomain, name).empty()) << name;
  for (const char* name : {"app", "a.b/c", "nvidia.com/gpu", "A_b.c-d"})
    EXPECT_TRUE(Of(CheckQualifiedName, name).empty()) << name;
  for (const char* value : {"", "v1.2_3-x", "A"})
    EXPECT_TRUE(Of(CheckLabelValue, value).empty()) << value;
  for (const char* key : {"a.txt", "..a"})
    EXPECT_EQ(Of(CheckConfigKey, key).empty(), key[0] == 'a') << key;
  for (const char* ip : {"10.9.8.7", "2001:db8::ffff", "::1"}) EXPECT_TRUE(IsIp(ip)) << ip;
}

TEST(Names, AddressesOfNobodysPodsInEveryForm) {
  for (const char* ip : {"127.8.8.8", "169.254.169.254", "0.0.0.0", "224.0.0.1", "::1", "fe80::1",
                         "::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "::ffff:0.0.0.0"})
    EXPECT_EQ(Of(CheckOrdinaryIp, ip).size(), 1U) << ip;
  for (const char* ip : {"10.9.8.7", "2001:db8::1", "::ffff:10.9.8.7"})
    EXPECT_TRUE(Of(CheckOrdinaryIp, ip).empty()) << ip;
}

TEST(Names, RefuseWithUpstreamsWords) {
  for (const char* name : {"", "-a", "a-", "A", "a_b", "a b"})
    EXPECT_FALSE(Of(CheckDns1123Label, name).empty()) << name;
  for (const char* name : {"", ".", "a..b", "a.", "A.b"})
    EXPECT_FALSE(Of(CheckDns1123Subdomain, name).empty()) << name;
  for (const char* name : {"1a", "", "a.b"})
    EXPECT_FALSE(Of(CheckDns1035Label, name).empty()) << name;
  for (const char* name : {"", "/a", "a/", "a/b/c", "A/b", "-x"})
    EXPECT_FALSE(Of(CheckQualifiedName, name).empty()) << name;
  for (const char* ip : {"", "1.2.3", "256.1.1.1", "a", "1.2.3.4.5", "::g"})
    EXPECT_FALSE(IsIp(ip)) << ip;
  EXPECT_EQ(Of(CheckDns1123Label, std::string(64, 'a')),
            Problems{"must be no more than 63 characters"});
  EXPECT_EQ(Of(CheckDns1123Label, "a.b"), Problems{"must not contain dots"});
  EXPECT_EQ(
      Of(CheckDns1123Label, "A")[0],
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
      "must start and end "
      "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
      "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')");
  EXPECT_EQ(
      Of(CheckPortName, "A-"),
      (Problems{"must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "must contain at least one letter (a-z)", "must not begin or end with a hyphen"}));
  EXPECT_EQ(Of(CheckPathSegment, "a/b%c"),
            (Problems{"may not contain '/'", "may not contain '%'"}));
  EXPECT_FALSE(Of(CheckEnvName, "A=B").empty());
  EXPECT_TRUE(Of(CheckEnvName, "my.var-1").empty());
}

}  // namespace
}  // namespace muster::schema
