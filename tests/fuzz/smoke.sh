#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Each fuzz target for a second or two, on its kept inputs first. TAP.
exec "$(dirname "$0")/run" "${1:-2}"
