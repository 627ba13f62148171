"""An agent of the standard library alone: asks once or more, in one of two wire formats, and prints what it was answered last."""

import json
import os
import sys
import urllib.request

KEY = os.environ.get("OPENAI_API_KEY", "")


def post(url, body, headers):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def chat(messages):
    headers = {"Authorization": f"Bearer {KEY}"}
    body = {"model": "gpt-of-another-company", "messages": messages, "seed": 3}
    return post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)["choices"][0]["message"]["content"]


def anthropic(messages):
    body = {"model": "claude", "messages": messages, "max_tokens": 1000, "metadata": {"user_id": "x"}}
    found = post(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages?beta=true", body, {"x-api-key": KEY})
    return found["content"][0]["text"]


if __name__ == "__main__":
    turns, wire = int(sys.argv[1]), {"chat": chat, "anthropic": anthropic}[sys.argv[2]]
    with open(os.environ["ASSAY_TASK"]) as file:
        history = list(json.load(file)["messages"])
    for _ in range(turns):
        text = wire(history)
        history += [{"role": "assistant", "content": text}, {"role": "user", "content": "S"}]
    with open("answer.txt", "w") as file:
        file.write(text)
    print(text)
