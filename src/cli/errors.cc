#include "cli/errors.h"

#include "net/pki.h"

namespace muster::cli {
namespace {

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

std::string DescribeError(const Status& status) {
  const std::string& message = status.message();
  const bool no_answer = message.starts_with("https://") || message.starts_with("http://");
  if (no_answer && Has(message, "Connection refused")) {
    return message +
           "\nNothing listens there. If this is your own cluster, start it with: muster up "
           "--detach";
  }
  if (no_answer && Has(message, "certificate")) {
    return message +
           "\nThe kubeconfig belongs to another cluster, or to an earlier one at this address.";
  }
  if (no_answer) return message;
  switch (status.reason()) {
    case Reason::kUnknown:
      return "error: " + message;
    case Reason::kInvalid:
      return status.details().kind.empty() ? "error: " + message : "The " + message;
    case Reason::kUnauthorized:
      return "error: You must be logged in to the server (" + message +
             ")\nThe certificate or token of the kubeconfig is not accepted by this server.";
    default:
      return "Error from server (" + std::string(ReasonName(status.reason())) + "): " + message;
  }
}

std::string DescribeCertificate(const std::string& certificate_pem, Time now) {
  const Result<net::CertificateInfo> info = net::ReadCertificate(certificate_pem);
  if (!info) return "";
  if (now > info->not_after) {
    return fmt::format(
        "The client certificate of the kubeconfig expired at {}. `muster up` makes a new one when "
        "it starts: restart it (muster down, muster up), then take its kubeconfig again: muster "
        "kubeconfig --merge",
        FormatTime(info->not_after));
  }
  if (now < info->not_before) {
    return fmt::format(
        "The client certificate of the kubeconfig is not valid before {}, and the clock here says "
        "{}: set the clock.",
        FormatTime(info->not_before), FormatTime(now));
  }
  return "";
}

}  // namespace muster::cli
