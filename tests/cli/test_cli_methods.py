"""`assay methods`: generated from the registry and the tables of names, without torch."""

import json
import subprocess
import sys

import pytest

from assay.objective.methods import methods
from assay.objective.peers import PEERS, match, matches


def test_the_list_is_the_registry(assay):
    rows = {r["name"]: r for r in assay("methods", "--json").json}
    assert list(rows) == list(methods())
    for name, method in methods().items():
        assert rows[name] == {
            "name": name,
            "sentence": method.sentence,
            "composition": method.composition,
            "needs": list(method.needs),
            "source": method.source,
            "status": method.status,
        }
    text = assay("methods").out
    assert all(name in text for name in rows)
    assert "Compares each answer with the others of its prompt" in text and ">>" not in text
    assert "`" not in text


def test_list_is_a_word_for_what_the_command_does_alone(assay):
    assert assay("methods", "list", "--json").json == assay("methods", "--json").json
    assert assay("recipes", "list", "--json").json == assay("recipes", "--json").json


def test_one_method(assay):
    found = assay("methods", "dapo", "--json").json
    assert found["settings"] == {"low": 0.2, "high": 0.28, "filter_groups": True, "overlong": None}
    assert found["doc"].startswith("DAPO (Yu 2025)")
    text = assay("methods", "gspo").out
    assert "low=0.0003, high=0.0004" in text and "logp_old" in text
    assert "elsewhere    " in text and "openrlhf:gspo" in text
    assert "settings     none" in assay("methods", "nll").out
    assert "namesakes    trl:dapo" in assay("methods", "dapo").out and "namesakes" not in assay("methods", "nll").out
    assert assay("methods", "nll", "--json").json["needs"] == []


def test_the_words_of_other_listings_work(assay):
    assert assay("methods", "list").out == assay("methods").out
    assert assay("methods", "show", "dapo", "--json").json == assay("methods", "dapo", "--json").json
    assert "did you mean" in assay("methods", "show", "dpao").err


def test_one_method_says_what_it_wires(assay):
    assert [w["place"] for w in assay("methods", "ppo", "--json").json["wired"]] == ["minibatches", "learner.heads"]
    text = assay("methods", "ppo").out
    assert "Learns a critic that estimates the value of each token" in text and "learner.heads " in text
    assert "wires        nothing" in assay("methods", "reinforce").out
    assert "teacher" in assay("methods", "opd").out.partition("wires ")[2]


@pytest.mark.parametrize("name", list(methods()))
def test_every_method_can_be_shown(assay, name):
    said = assay("methods", name).out
    assert said.startswith(methods()[name].sentence) and methods()[name].summary.replace("`", "") in said
    assert assay("methods", name, "--json").json["name"] == name


@pytest.mark.parametrize("library", PEERS)
def test_names_of_a_library(assay, library):
    rows = assay("methods", "--peer", library, "--json").json
    assert [(r["kind"], r["name"]) for r in rows] == [(m.kind, m.name) for m in matches(library)]
    assert PEERS[library] in assay("methods", "--peer", library).out


def test_one_name_of_a_library(assay):
    found = assay("methods", "--peer", "verl:grpo", "--json").json
    assert found == [
        {
            "library": "verl",
            "kind": "advantage",
            "name": "grpo",
            "here": "(Center(), Scale(eps=1e-6))",
            "note": match("verl", "grpo").note,
            "reason": "",
            "composition": "Center() | Scale() >> PolicyGradient(Ratio('none'), trust=None) >> SeqSum()",
        }
    ]
    text = assay("methods", "--peer", "verl:gspo").out
    assert "here         replace(gspo(low=0.2, high=0.2), aggregate=Token())" in text
    assert "differs      clip 0.2" in text
    assert "why not" in assay("methods", "--peer", "trl:gold").out
    both = assay("methods", "--peer", "verl:gpg", "--json").json
    assert [r["kind"] for r in both] == ["loss", "advantage"]
    assert "differs" not in assay("methods", "--peer", "trl:none").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gropo"], "did you mean 'grpo'"),
        (["--peer", "vrel"], "did you mean 'verl'"),
        (["--peer", "verl:cipso"], "did you mean 'cispo'"),
        (["grpo", "--peer", "verl"], "one of them"),
        (["grpo", "--atlas"], "one of them"),
    ],
)
def test_wrong_names(assay, words, said):
    got = assay("methods", *words)
    assert got.code == 2
    assert said in got.err


def test_atlas(assay, monkeypatch):
    from assay.objective import atlas

    monkeypatch.setattr(atlas, "SEEDS", range(1))
    few = {name: methods()[name].objective() for name in ("gspo", "tis", "reinforce")}
    monkeypatch.setattr(atlas, "_named_objectives", lambda: few)
    found = assay("methods", "--atlas", "--json").json
    assert list(found) == list(atlas.CONDITIONS)
    assert {"gspo", "tis"} in map(set, found["on policy"])
    text = assay("methods", "--atlas").out
    assert "on policy: " in text and "gspo, tis" in text


@pytest.mark.slow
def test_nothing_but_the_atlas_needs_torch():
    code = (
        "import sys; from assay.cli import main\n"
        "codes = [main(['methods', *words]) for words in ([], ['grpo'], ['--peer', 'verl'], ['--peer', 'trl:cispo'])]\n"
        "import json; print(json.dumps([codes, 'torch' in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [[0, 0, 0, 0], False]


@pytest.mark.parametrize("words", [("w_grpo", "scale"), ("ppo", "whiten"), ("kl_rl", "baseline")])
def test_the_word_none_of_a_setting_can_be_given(assay, words: tuple[str, str]) -> None:
    method, setting = words
    said = assay("explain", "quickstart", "--stages.0.objective.kind", method, f"--stages.0.objective.{setting}", "none")
    assert said.code == 0, said.err
