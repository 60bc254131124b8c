"""Compares this repository's own facts about the API with the description that tccli brings:
schema.py CRATE, which is the folder of uturn-cloud-api.

The schema's actions and members, with their types and whether requests need them; and the forms
of the documented exchanges.
"""

import json
import pathlib
import sys

import tccli

SERVICES = pathlib.Path(tccli.__file__).parent / "services"
#: Types of the description and how the schema writes them.
TYPES = {
    "string": "string",
    "date": "string",
    "datetime": "string",
    "datetime_iso": "string",
    "binary": "string",
    "int64": "int",
    "uint64": "uint",
    "bool": "bool",
    "float": "float",
}


def described(service, version):
    folder = SERVICES / service / f"v{version.replace('-', '')}"
    return json.loads((folder / "api.json").read_text(encoding="utf-8"))


def type_of(object_name, member):
    name = TYPES.get(member["member"], member["member"])
    name = f"[{name}]" if member["type"] == "list" else name
    # Answers promise nothing.
    is_needed = member.get("required") and not object_name.endswith("Response")
    return name + ("!" if is_needed else "")


def schema_faults(crate):
    counted = 0
    for file in sorted((crate / "schema").glob("*.json")):
        schema = json.loads(file.read_text(encoding="utf-8"))
        published = described(schema["service"], schema["version"])
        name = published["metadata"]["serviceShortName"]
        if name == "clb" and set(schema["actions"]) != set(published["actions"]):
            yield f"clb: other actions: {set(schema['actions']) ^ set(published['actions'])}"
        for action in schema["actions"]:
            if action not in published["actions"]:
                yield f"{name}: there is no action {action}"
        for object_name, members in schema["objects"].items():
            object_ = published["objects"].get(object_name)
            if object_ is None:
                # An action without parameters has no object for them.
                if members:
                    yield f"{name}: there is no object {object_name}"
                continue
            expected = {m["name"]: type_of(object_name, m) for m in object_["members"]}
            counted += len(expected)
            if expected != members:
                differing = set(expected.items()) ^ set(members.items())
                yield f"{name}: {object_name} differs: {sorted(differing)}"
    print(f"{counted} members of the schema compared")


def form(value):
    """The form of a value as exchanges.txt has it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{form(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dict.fromkeys(map(form, value))) + "]"
    letters = {bool: "b", int: "i", float: "f", str: "s", type(None): "n"}
    return letters[type(value)]


def documented(service="clb", version="v20180317"):
    """The documented exchanges: action, method, parameters and answer. The parameters of a GET
    are flattened."""
    folder = SERVICES / service / version
    examples = json.loads((folder / "examples.json").read_text(encoding="utf-8"))
    for action, exchanges in examples["actions"].items():
        for exchange in exchanges:
            text = exchange["input"]
            answer = json.loads(exchange["output"])["Response"]
            if text.startswith("POST"):
                yield action, "POST", json.loads(text.split("\n\n", 1)[1]), answer
                continue
            pairs = [pair.strip() for pair in text.split("?", 1)[1].split("\n&")]
            pairs = [pair for pair in pairs if "=" in pair and not pair.startswith("Action=")]
            yield action, "GET", dict(pair.split("=", 1) for pair in pairs), answer


def exchange_lines():
    for action, method, parameters, answer in documented():
        request = form(parameters) if method == "POST" else "&".join(parameters)
        yield f"{action} {method} {request} -> {form(answer)}"


def exchange_faults(crate):
    file = crate / "tests" / "exchanges" / "exchanges.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith("#")]
    found = list(exchange_lines())
    for line in [line for line in found if line not in kept]:
        yield f"exchanges.txt lacks {line}"
    for line in [line for line in kept if line not in found]:
        yield f"exchanges.txt has what is not documented: {line}"
    print(f"{len(found)} exchanges compared")


if __name__ == "__main__":
    crate = pathlib.Path(sys.argv[1])
    faults = [*schema_faults(crate), *exchange_faults(crate)]
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)
