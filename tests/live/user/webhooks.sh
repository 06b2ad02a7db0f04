#!/usr/bin/env bash
# The pod that is a webhook is in the network of the user's node, where the API server is not.
exec "$(dirname "$0")/../webhooks.sh"
