#!/usr/bin/env python3
"""Writes src/schema/time_zone_table.cc from a compiled tz database (/usr/share/zoneinfo, or the folder named)."""

import pathlib
import subprocess
import sys

TARGET = pathlib.Path(__file__).resolve().parent.parent.parent / "src/schema/time_zone_table.cc"
# Copies of the whole database, and files that name no place.
LEFT_OUT = ("posix", "right", "Factory", "localtime", "posixrules")


def rules(root):
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if not path.is_file() or name.split("/")[0] in LEFT_OUT:
            continue
        content = path.read_bytes()
        if content.startswith(b"TZif"):
            # Since version 2 the file ends with the rule for times after its last change.
            found.setdefault(content.rsplit(b"\n", 2)[1].decode(), []).append(name)
    return found


def lines(names, width):
    line = ""
    for name in names:
        if line and len(line) + 1 + len(name) > width:
            yield line + " "
            line = ""
        line += (" " if line else "") + name
    yield line


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/zoneinfo")
    rows = []
    for rule, names in sorted(rules(root).items()):
        texts = "\n".join(f'"{line}"' for line in lines(names, 90))
        rows.append(f'{{"{rule}",\n{texts}}},')
    head = (root / "tzdata.zi").read_text().split("\n")[0].lstrip("# ")
    text = f"""// Made by tools/schema/make_time_zones.py from the tz database, {head}.

#include "schema/time_zones.h"

namespace muster::schema {{
namespace {{

constexpr TimeZoneRule kRules[] = {{
{chr(10).join(rows)}
}};

}}  // namespace

const std::span<const TimeZoneRule> kTimeZoneRules = kRules;

}}  // namespace muster::schema
"""
    TARGET.write_text(text)
    subprocess.run(["clang-format-19", "-i", TARGET], check=True)


main()
