#include <gtest/gtest.h>

#include <string>

#include "apiserver/aggregation/fake_extensions.h"
#include "apiserver/apiserver_testing.h"

namespace muster::apiserver {
namespace {

constexpr const char* kServices = "/api/v1/namespaces/default/services";

class ServiceProxyHandlerTest : public testing::Test {
 protected:
  ServiceProxyHandlerTest() : test_(Options()) {
    Create(kServices, R"({"metadata":{"name":"web"},"spec":{"ports":[)"
                      R"({"name":"page","port":80,"targetPort":8265},)"
                      R"({"name":"other","port":81,"targetPort":82}]}})");
    Create(kServices, R"({"metadata":{"name":"one"},"spec":{"ports":[{"port":80}]}})");
    Create(kServices,
           R"({"metadata":{"name":"away"},"spec":{"type":"ExternalName","externalName":"x.org"}})");
    Slice("web", R"("10.1.2.3")", R"({"name":"page","port":8265})");
  }

  ServerOptions Options() {
    ServerOptions options;
    options.extension_client = &extensions_;
    return options;
  }
  void Create(const std::string& path, const std::string& body) {
    EXPECT_EQ(test_.Send("POST", path, body)->status, 201) << body;
  }
  void Slice(const std::string& service, const std::string& address, const std::string& port) {
    Create("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
           fmt::format(R"({{"metadata":{{"name":"{0}-s","labels":{{"kubernetes.io/service-name":)"
                       R"("{0}"}}}},"addressType":"IPv4","endpoints":[{{"addresses":[{1}]}}],)"
                       R"("ports":[{2}]}})",
                       service, address, port));
  }
  FakeExtensions::QuestionPtr Asked(const std::string& path) {
    writer_ = test_.Send("GET", std::string(kServices) + path);
    return extensions_.Take();
  }
  std::string Refused(const std::string& path) {
    EXPECT_EQ(Asked(path), nullptr) << path;
    const json::Value status = TestServer::Json(*writer_);
    return fmt::format("{} {}", writer_->status, status["message"].AsString());
  }

  FakeExtensions extensions_;
  TestServer test_;
  std::shared_ptr<FakeWriter> writer_;
};

TEST_F(ServiceProxyHandlerTest, PassesARequestOnToAPodOfTheService) {
  net::Headers headers;
  headers.Add("Content-Type", "application/json");
  headers.Add("Authorization", "Bearer secret");
  headers.Add("X-Remote-User", "root");
  const auto writer =
      test_.Send("POST", std::string(kServices) + "/web:page/proxy/api/jobs/?a=b%20c",
                 R"({"entrypoint":"true"})", headers);
  const auto question = extensions_.Take();
  ASSERT_NE(question, nullptr);
  EXPECT_EQ(question->target.endpoint.ToString(), "http://10.1.2.3:8265");
  EXPECT_TRUE(question->target.in_cluster);
  EXPECT_EQ(question->request.method, "POST");
  EXPECT_EQ(question->request.target, "/api/jobs/?a=b%20c");
  EXPECT_EQ(question->request.body, R"({"entrypoint":"true"})");
  EXPECT_EQ(question->request.headers.Get("Content-Type"), "application/json");
  EXPECT_EQ(question->request.headers.Get("Host"), "10.1.2.3:8265");
  EXPECT_FALSE(question->request.headers.Has("Authorization"));
  EXPECT_FALSE(question->request.headers.Has("X-Remote-User"));
  net::Headers answer;
  answer.Add("Content-Type", "text/plain");
  question->Answer(418, "short and stout", answer);
  test_.loop.RunReady();
  EXPECT_EQ(writer->status, 418);
  EXPECT_EQ(writer->body, "short and stout");
  EXPECT_EQ(writer->headers.Get("Content-Type"), "text/plain");
}

TEST_F(ServiceProxyHandlerTest, FindsThePortByNameByNumberOrBecauseItIsTheOnlyOne) {
  for (const char* name : {"/web:page", "/web:80", "/http:web:page"}) {
    const auto question = Asked(std::string(name) + "/proxy/x");
    ASSERT_NE(question, nullptr) << name;
    EXPECT_EQ(question->request.target, "/x");
  }
  Slice("one", R"("10.1.2.4")", R"({"port":80})");
  const auto question = Asked("/one/proxy");
  ASSERT_NE(question, nullptr);
  EXPECT_EQ(question->target.endpoint.ToString(), "http://10.1.2.4:80");
  EXPECT_EQ(question->request.target, "/");
}

TEST_F(ServiceProxyHandlerTest, SaysWhyAServiceLeadsNowhere) {
  EXPECT_EQ(Refused("/none:80/proxy"), "404 services \"none\" not found");
  EXPECT_EQ(Refused("/web:82/proxy"), "503 no service port \"82\" found for service \"web\"");
  EXPECT_EQ(Refused("/web/proxy"), "503 no service port \"\" found for service \"web\"");
  EXPECT_EQ(Refused("/web:other/proxy"), "503 no endpoints available for service \"web\"");
  EXPECT_EQ(Refused("/one/proxy"), "503 no endpoints available for service \"one\"");
  EXPECT_EQ(Refused("/away:80/proxy"), "503 service \"away\" has no pods to pass a request on to");
  EXPECT_EQ(Refused("/ftp:web:80/proxy"), "400 invalid service request \"ftp:web:80\"");
  EXPECT_EQ(Refused("/https:web:80/proxy"),
            "400 the proxy to services speaks http only so far: not https, as in "
            "\"https:web:80\"");
  EXPECT_EQ(Refused("/a:b:c:d/proxy"), "400 invalid service request \"a:b:c:d\"");
}

}  // namespace
}  // namespace muster::apiserver
