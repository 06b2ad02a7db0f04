#include "cli/errors.h"

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

}  // namespace muster::cli
