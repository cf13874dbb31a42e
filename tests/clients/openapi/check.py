"""Starts a server, and lets Schemathesis send requests to it.

    check.py PATH_OF_INTERLINGUA PATH_OF_SCHEMATHESIS

The first pass uses the description of the routes as it is served. Most of what it makes up is refused early, so in the
second pass the description names sessions, an agent, dialects and offsets that exist.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

TOKEN = "0123456789abcdef0123456789abcdef"

# The same requests every time.
SEED = "20"

# Plays Claude Code, and repeats its prompt.
AGENT = r"""
while read -r line; do
  case $line in *'"type":"user"'*) ;; *) continue;; esac
  echo '{"type":"system","subtype":"init","session_id":"s1","model":"m","cwd":"/w","tools":[],"uuid":"i"}'
  echo '{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"Hello."}]},"session_id":"s1","uuid":"u"}'
  echo '{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"s1","uuid":"r"}'
done
"""


def main(interlingua, schemathesis):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "agent.sh").write_text(AGENT)
        agent = folder / "agent.toml"
        agent.write_text(
            f'command = "/bin/sh"\narguments = ["{folder}/agent.sh"]\ndialect = "claude"\nprompt = "protocol"\n'
        )
        server = subprocess.Popen(
            [interlingua, "serve", "--listen", "127.0.0.1:0", "--store", folder / "sessions.db"]
            + ["--allow-agent", agent],
            cwd=folder,
            env={**os.environ, "INTERLINGUA_TOKEN": TOKEN},
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            address = "http://" + server.stderr.readline().strip().split("http://")[1]
            sys.exit(check(schemathesis, address, folder, str(agent)))
        finally:
            server.kill()
            server.wait()


def check(schemathesis, address, folder, agent):
    described = request(address, "/openapi.json")
    as_served = folder / "openapi.json"
    as_served.write_text(json.dumps(described))
    sessions = [request(address, "/v1/sessions", {"agent": agent, "prompt": "Hello."})["id"] for _ in range(8)]
    guided = folder / "guided.json"
    guided.write_text(json.dumps(guide(described, sessions, agent)))
    for schema, examples, more in [(as_served, "20", []), (guided, "40", ["--exclude-method", "DELETE"])]:
        command = [schemathesis, "run", schema, "--url", address, "--seed", SEED, "--max-examples", examples]
        command += ["--header", f"Authorization: Bearer {TOKEN}", "--checks", "not_a_server_error"]
        # A server takes 100 requests a second with one token.
        command += ["--rate-limit", "90/s", "--warnings", "off", "--request-timeout", "60", *more]
        code = subprocess.run(command, cwd=folder).returncode
        if code:
            return 1
    # It still works.
    request(address, "/readyz")
    return 0


def request(address, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(address + path, data, headers)) as response:
        text = response.read()
    return json.loads(text) if response.headers["Content-Type"] == "application/json" else text


def guide(described, sessions, agent):
    """Names what exists. A live stream would last, so none is requested."""
    described = json.loads(json.dumps(described))
    known = {
        "id": sessions,
        "offset": ["-1", "now", f"{0:020}", f"{3:020}", f"{999:020}"],
        "dialect": ["events", "text", "claude", "ui-message", "ag-ui", "acp", "codex"],
        "turn": [1, 2, 3],
    }
    for path in described["paths"].values():
        for operation in path.values():
            parameters = [it for it in operation.get("parameters", []) if it["name"] != "live"]
            for parameter in parameters:
                if parameter["name"] in known:
                    kind = "integer" if parameter["name"] == "turn" else "string"
                    parameter["schema"] = {"type": kind, "enum": known[parameter["name"]]}
            operation["parameters"] = parameters
    properties = described["components"]["schemas"]["CreateSession"]["properties"]
    properties["agent"] = {"type": "string", "enum": [agent]}
    properties["cwd"] = {"type": "string", "enum": [".", "/", "missing"]}
    properties["continueFrom"] = {"type": "string", "enum": sessions}
    return described


main(*sys.argv[1:])
