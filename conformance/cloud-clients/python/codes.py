"""Compares the codes that this repository's tests allow each action with those that the comments of
the Go SDK list: codes.py CRATE MODULE, the folders of uturn-cloud and of the Go program."""

import pathlib
import re
import subprocess
import sys

SDK = "github.com/tencentcloud/tencentcloud-sdk-go/tencentcloud/clb"
#: The comments before a function, and its name.
FUNCTION = re.compile(r"((?://[^\n]*\n)+)func \(c \*Client\) (\w+)\(")
CODE = re.compile(r'= "([\w.]+)"')


def listed(module):
    folder = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", SDK],
        cwd=module, check=True, capture_output=True, text=True,
    ).stdout.strip()
    source = pathlib.Path(folder, "v20180317", "client.go").read_text(encoding="utf-8")
    return {name: set(CODE.findall(comments)) for comments, name in FUNCTION.findall(source)}


def main():
    crate, module = map(pathlib.Path, sys.argv[1:])
    file = crate / "tests" / "actions" / "codes.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    kept = dict(line.split(" ", 1) for line in lines if not line.startswith("#"))
    sdk, differing = listed(module), 0
    for action, codes in kept.items():
        if set(codes.split(" ")) != sdk[action]:
            differing += 1
            print(f"{action}: {sorted(set(codes.split(' ')) ^ sdk[action])}")
    print(f"codes of {len(kept)} actions compared")
    sys.exit(1 if differing else 0)


main()
