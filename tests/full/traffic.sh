#!/usr/bin/env bash
# Issue 6: 200,000 requests through 50 rollouts, 20 drains and 20 lost endpoints.
exec env ROLLOUTS=50 DRAINS=20 LOSSES=20 REQUESTS=200000 "$(dirname "$0")/../netbox/netbox" "$(dirname "$0")/../live/traffic.sh"
