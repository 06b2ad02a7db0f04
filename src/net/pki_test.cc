#include "net/pki.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace muster::net {
namespace {

namespace fs = std::filesystem;

Time At(std::string_view text) { return *ParseTime(text); }

class PkiTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::temp_directory_path() / ("muster-pki-test-" + std::to_string(getpid()));
    fs::remove_all(dir_);
    fs::create_directory(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }
  fs::path dir_;
  Time now_ = At("2026-03-01T00:00:00Z");
};

TEST_F(PkiTest, ServesTheSameCertificatesAtTheNextStart) {
  std::string dir = dir_ / "pki";
  auto first = Pki::LoadOrCreate(dir, now_);
  ASSERT_TRUE(first.has_value()) << first.error().ToString();
  ServerNames names = DefaultServerNames("box", {"10.0.0.7", "fd00:0::1"});
  auto server = first->LoadOrIssueServer("server", names, now_);
  ASSERT_TRUE(server.has_value()) << server.error().ToString();
  auto admin = first->LoadOrIssueClient("admin", "muster-admin", {"system:masters"}, now_);

  auto again = Pki::LoadOrCreate(dir, now_ + hours(24));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->ca_pem(), first->ca_pem());
  EXPECT_EQ(again->LoadOrIssueServer("server", names, now_)->certificate_pem,
            server->certificate_pem);
  EXPECT_EQ(again->LoadOrIssueClient("admin", "muster-admin", {"system:masters"}, now_)->key_pem,
            admin->key_pem);
  for (const auto& entry : fs::directory_iterator(dir)) {
    struct stat info{};
    ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u) << entry.path();
  }
}

TEST_F(PkiTest, NamesWhatAServerIsCalled) {
  auto pki = Pki::Create(now_);
  auto pair = pki->IssueServer("muster", DefaultServerNames("box", {"10.0.0.7"}), now_);
  auto info = ReadCertificate(pair->certificate_pem);
  ASSERT_TRUE(info.has_value());
  for (const char* dns :
       {"localhost", "kubernetes", "kubernetes.default.svc.cluster.local", "box"}) {
    EXPECT_NE(std::find(info->dns.begin(), info->dns.end(), dns), info->dns.end()) << dns;
  }
  for (const char* ip : {"127.0.0.1", "::1", "10.43.0.1", "10.0.0.7"}) {
    EXPECT_NE(std::find(info->ips.begin(), info->ips.end(), ip), info->ips.end()) << ip;
  }
  EXPECT_EQ(info->not_after, now_ + kCertificateLifetime);
}

TEST_F(PkiTest, PutsUserAndGroupsIntoClientCertificates) {
  auto pki = Pki::Create(now_);
  auto info = ReadCertificate(
      pki->IssueClient("system:node:n1", {"system:nodes", "b"}, now_)->certificate_pem);
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->common_name, "system:node:n1");
  EXPECT_EQ(info->organizations, (std::vector<std::string>{"system:nodes", "b"}));
}

TEST_F(PkiTest, RenewsInTimeAndWhenNamesChange) {
  auto pki = Pki::LoadOrCreate(dir_, now_);
  auto first = pki->LoadOrIssueServer("server", DefaultServerNames("a", {}), now_);
  Time late = now_ + kCertificateLifetime - kRenewBefore;
  EXPECT_EQ(pki->LoadOrIssueServer("server", DefaultServerNames("a", {}), late)->key_pem,
            first->key_pem);
  auto renewed = pki->LoadOrIssueServer("server", DefaultServerNames("a", {}), late + seconds(1));
  EXPECT_NE(renewed->key_pem, first->key_pem);
  EXPECT_NE(pki->LoadOrIssueServer("server", DefaultServerNames("b", {}), late)->key_pem,
            renewed->key_pem);
}

TEST_F(PkiTest, IssuesAgainForANewAuthority) {
  auto first = Pki::LoadOrCreate(dir_, now_);
  auto pair = first->LoadOrIssueClient("admin", "u", {}, now_);
  fs::remove(dir_ / "ca.crt");
  fs::remove(dir_ / "ca.key");
  auto second = Pki::LoadOrCreate(dir_, now_);
  EXPECT_NE(second->LoadOrIssueClient("admin", "u", {}, now_)->key_pem, pair->key_pem);
}

TEST_F(PkiTest, NeverReplacesABrokenAuthority) {
  ASSERT_TRUE(Pki::LoadOrCreate(dir_, now_).has_value());
  std::ofstream(dir_ / "ca.key") << "not a key";
  auto broken = Pki::LoadOrCreate(dir_, now_);
  ASSERT_FALSE(broken.has_value());
  EXPECT_NE(broken.error().message().find("ca.key"), std::string::npos);
  fs::remove(dir_ / "ca.key");
  EXPECT_FALSE(Pki::LoadOrCreate(dir_, now_).has_value()) << "a certificate without its key";
}

TEST_F(PkiTest, RefusesNamesThatWouldInjectExtensions) {
  auto pki = Pki::Create(now_);
  EXPECT_FALSE(pki->IssueServer("x", {.dns = {"a,IP:1.2.3.4"}, .ips = {}}, now_).has_value());
  EXPECT_FALSE(pki->IssueServer("x", {.dns = {}, .ips = {"nonsense"}}, now_).has_value());
}

}  // namespace
}  // namespace muster::net
