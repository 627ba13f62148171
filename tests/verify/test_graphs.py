"""Graph answers by property: by hand, and against networkx on thousands of near misses."""

import itertools
import json
import random

import networkx as nx
import pytest

from assay.core.errors import DataError, UnknownNameError
from assay.verify import about, task_and_rollout, verifier, verifiers
from assay.verify.structure.reading import groups_in, names_in, pairs_in, table_in

SQUARE = {"edges": [["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"]]}
WEIGHED = {"edges": [["a", "b", 1], ["b", "c", 1.5], ["a", "c", 3]], "source": "a", "target": "c", "value": 2.5}
TREE = {"edges": [[1, 2, 1], [2, 3, 2], [1, 3, 5]], "value": 3}
DAG = {"edges": [["a", "b"], ["a", "c"], ["b", "d"], ["c", "d"]], "directed": True}
PARTS = {"edges": [[1, 2]], "nodes": [1, 2, 3]}

CASES = [
    (
        "path",
        SQUARE | {"source": "a", "target": "c"},
        {
            "a -> b -> c": "equal",
            "a, d, c": "equal",
            "a c": "invalid",
            "a b": "invalid",
            "a b a d c": "invalid",
            "a - z": "unparsed",
            "": "unparsed",
            "none": "different",
            '["a", "b", "c"]': "equal",
            "Answer: a→b→c": "equal",
        },
    ),
    ("shortest_path", WEIGHED, {"a b c": "equal", "a c": "suboptimal", "b c": "invalid"}),
    ("shortest_path", WEIGHED | {"value": 99}, {"a b c": "equal"}),  # the gold is wrong, the answer is better
    ("path", SQUARE | {"source": "a", "target": "c", "directed": True}, {"a b c": "equal", "a d c": "invalid"}),
    (
        "path",
        PARTS | {"source": 1, "target": 3, "possible": False},
        {"none": "equal", "Impossible.": "equal", "1 2 3": "different"},
    ),
    (
        "cycle",
        SQUARE,
        {
            "a b c d": "equal",
            "a b c d a": "equal",
            "a b": "invalid",
            "a b c": "invalid",
            "a b c a b c d": "invalid",
            "a": "invalid",
        },
    ),
    ("cycle", {"edges": [["a", "b"], ["b", "a"]], "directed": True}, {"a b": "equal", "a": "invalid"}),
    ("hamilton_path", SQUARE, {"b c d a": "equal", "a b c": "invalid", "a b c a": "invalid", "a c b d": "invalid"}),
    ("hamilton_path", SQUARE | {"source": "a"}, {"b c d a": "invalid", "a d c b": "equal"}),
    ("hamilton_cycle", SQUARE, {"a b c d a": "equal", "c b a d": "equal", "a b c": "invalid"}),
    ("hamilton_cycle", TREE | {"value": 8}, {"1 2 3": "equal"}),
    ("euler_path", SQUARE, {"a b c d a": "equal", "a b c d": "invalid", "a b c d a b": "invalid"}),
    ("euler_path", {"edges": [[1, 2], [1, 2], [2, 3]], "closed": False}, {"3 2 1 2": "equal", "1 2 3": "invalid"}),
    ("euler_path", {"edges": [[1, 2], [2, 3]], "closed": True}, {"1 2 3": "invalid"}),
    (
        "topological_order",
        DAG,
        {"a b c d": "equal", "a, c, b, d": "equal", "b a c d": "invalid", "a b c": "invalid", "a a b c d": "invalid"},
    ),
    (
        "coloring",
        SQUARE | {"colors": ["red", "blue"]},
        {
            "a: red, b: blue, c: red, d: blue": "equal",
            '{"a": "red"}': "invalid",
            "a red": "unparsed",
            "a: red, b: red, c: red, d: blue": "invalid",
            "a: red, b: sky, c: red, d: sky": "invalid",
        },
    ),
    ("coloring", SQUARE | {"colors": 2}, {"a: 1, b: 2, c: 1, d: 3": "invalid", "a: 1, b: 2, c: 1, d: 2": "equal"}),
    ("coloring", SQUARE | {"value": 2}, {"a: 1, b: 2, c: 1, d: 3": "suboptimal", "a=1; b=2; c=1; d=2": "equal"}),
    (
        "components",
        PARTS,
        {
            "[[1, 2], [3]]": "equal",
            "1 2\n3": "equal",
            "[[1], [2], [3]]": "invalid",
            "[[1, 2]]": "invalid",
            "[[1, 2], [3]] and x": "unparsed",
            "{2, 1}; {3}": "equal",
        },
    ),
    (
        "bipartition",
        SQUARE,
        {"{a, c}, {b, d}": "equal", "{a, b}, {c, d}": "invalid", "{a}, {c}, {b, d}": "invalid", "a, b": "invalid"},
    ),
    (
        "spanning_tree",
        TREE,
        {
            "(1, 2), (2, 3)": "equal",
            "1-2, 1-3": "suboptimal",
            "1-2": "invalid",
            "1-2, 2-1": "invalid",
            "1-2, 2-4": "unparsed",
            "1 2; 2 3": "equal",
            "1, 2, 3": "unparsed",
            "(1, 2), (2, 3), (1, 3)": "invalid",
        },
    ),
    ("spanning_tree", {"edges": [[1, 2], [3, 4], [1, 3]]}, {"1-2, 3-4, 2-3": "invalid"}),
    (
        "matching",
        SQUARE | {"value": 2},
        {"(a, b), (c, d)": "equal", "[[a, b]]": "suboptimal", "(a, b), (b, c)": "invalid", "(a, c)": "invalid"},
    ),
    ("independent_set", SQUARE, {"a, c": "equal", "a": "equal", "a b": "invalid", "a a": "invalid", "x": "unparsed"}),
    ("clique", TREE | {"value": 3}, {"1, 2, 3": "equal", "1, 2": "suboptimal"}),
    ("clique", SQUARE, {"a, b": "equal", "a, c": "invalid"}),
    ("vertex_cover", SQUARE | {"value": 2}, {"a, c": "equal", "a, b, c": "suboptimal", "a, b": "invalid"}),
    ("dominating_set", SQUARE | {"value": 2}, {"a, c": "equal", "a": "invalid", "a, b": "equal", "a, b, c": "suboptimal"}),
]


@pytest.mark.parametrize(("name", "gold", "answers"), CASES)
def test_by_hand(name: str, gold: dict, answers: dict) -> None:
    judge = verifier(f"graph_{name}")
    for said, verdict in answers.items():
        score = judge(*task_and_rollout(gold, said))
        assert score.info["verdict"] == verdict, (said, dict(score.info))
        assert dict(score.components) == {
            "correct": float(verdict == "equal"),
            "valid": float(verdict in ("equal", "suboptimal")),
        }


def test_every_graph_verifier_has_a_case() -> None:
    assert {f"graph_{name}" for name, *_ in CASES} == {n for n in verifiers() if n.startswith("graph_")}


def test_an_answer_better_than_the_gold_is_right_and_says_so() -> None:
    score = verifier("graph_shortest_path")(*task_and_rollout(WEIGHED | {"value": 99}, "a b c"))
    assert score.primary == 1.0 and score.info["beats_gold"] is True


def test_golds() -> None:
    path = verifier("graph_shortest_path")
    for gold in (
        3,
        {},
        {"edges": [[1]]},
        {"edges": [[1, 2, "x"]]},
        {"edges": [[1, 2, -1]]},
        {"edges": []},
        {"edges": [[1, 2]], "nodes": [1]},
        {"edges": [[1, 2]], "nodes": "ab"},
        {"edges": [[1, 2]]},
        WEIGHED | {"value": "2"},
        WEIGHED | {"source": "z"},
        WEIGHED | {"value": True},
        WEIGHED | {"nodes": True},
    ):
        with pytest.raises(DataError, match="gold"):
            path(*task_and_rollout(gold, "1 2" if gold != WEIGHED | {"source": "z"} else "a b c"))
    with pytest.raises(DataError, match="colors"):
        verifier("graph_coloring")(*task_and_rollout(SQUARE | {"colors": "red"}, "a: 1"))
    with pytest.raises(UnknownNameError, match=r"ShortestPath\.where"):
        verifier("graph_shortest_path", where="x")
    assert verifier("graph_components")(*task_and_rollout({"edges": [], "nodes": 2}, "[0], [1]")).primary == 1.0
    assert about("graph_clique").settings == {"where": "auto"}


def test_reading() -> None:
    assert names_in("-1 -> 2", ("-1", "2")) == ["-1", "2"]
    assert groups_in("", "a") is None and pairs_in("", "a") is None and table_in("") is None
    assert groups_in("(a) (z)", "a") is None and pairs_in("(a, b), c", "abc") is None
    assert table_in("a=1, a=2") is None and table_in("a=1, a=1, b=2") == {"a": "1", "b": "2"}
    assert names_in("**a -> b.**", "ab") == names_in("a to b", "ab") == names_in("a, and b.", "ab") == ["a", "b"]
    assert names_in("a and b", ("a", "and", "b")) == ["a", "and", "b"] and names_in("and", "ab") is None
    assert groups_in("{a} and {b}.", "ab") == [["a"], ["b"]] and groups_in("{a} or {b}", "ab") is None
    assert pairs_in("a-b and b-c", "abc") == pairs_in("(a, b) and (b, c)", "abc") == [("a", "b"), ("b", "c")]
    assert table_in("Node a: red\nnode b: blue", "ab") == {"a": "red", "b": "blue"} == table_in("**a**: red and b: blue.")
    assert table_in("- a: 1\n- b: 2\n") == {"a": "1", "b": "2"}
    assert table_in("a: 1, a: 1") == {"a": "1"} and table_in("a: , b: 1") is None and table_in("[1]") is None


# ---- a second implementation: networkx


def drawn(rng: random.Random, directed: bool = False) -> tuple[dict, nx.Graph]:
    n = rng.randint(2, 6)
    kind = nx.DiGraph if directed else nx.Graph
    graph = kind()
    graph.add_nodes_from(map(str, range(n)))
    for a, b in itertools.combinations(range(n), 2):
        if rng.random() < 0.55:
            graph.add_edge(str(a), str(b), weight=rng.randint(1, 3))
    edges = [[a, b, w] for a, b, w in graph.edges(data="weight")]
    rng.shuffle(edges)
    return {"edges": edges, "nodes": n, "directed": directed}, graph


@pytest.mark.slow
def test_routes_against_networkx() -> None:
    rng = random.Random(11)
    tallies = dict.fromkeys(("path", "shortest", "cycle", "hamilton", "order", "euler"), 0)
    for _ in range(1300):
        directed = rng.random() < 0.4
        gold, graph = drawn(rng, directed)
        nodes = list(graph)
        source, target = rng.choice(nodes), rng.choice(nodes)
        route = rng.sample(nodes, rng.randint(1, len(nodes)))
        if rng.random() < 0.5 and nx.has_path(graph, source, target):
            route = nx.shortest_path(graph, source, target, weight=rng.choice([None, "weight"]))
        if rng.random() < 0.1:
            route = [*route, rng.choice(nodes)]
        said = rng.choice([" -> ", ", ", " "]).join(route)
        ends = gold | {"source": source, "target": target}
        simple = len(route) == 1 or nx.is_simple_path(graph, route)
        right = simple and len(set(route)) == len(route) and (route[0], route[-1]) == (source, target)
        assert verifier("graph_path")(*task_and_rollout(ends, said)).primary == float(right), (ends, said)
        tallies["path"] += right
        if nx.has_path(graph, source, target):
            least = nx.dijkstra_path_length(graph, source, target)
            best = right and nx.path_weight(graph, route, "weight") == least
            assert verifier("graph_shortest_path")(*task_and_rollout(ends | {"value": least}, said)).primary == float(best)
            tallies["shortest"] += best
        ring = route + route[:1]
        closed = len(set(route)) == len(route) >= (2 if directed else 3) and nx.is_path(graph, ring)
        if route[0] != route[-1]:
            assert verifier("graph_cycle")(*task_and_rollout(gold, said)).primary == float(closed)
            tallies["cycle"] += closed
        whole = simple and len(set(route)) == len(route) == len(nodes)
        assert verifier("graph_hamilton_path")(*task_and_rollout(gold, said)).primary == float(whole)
        tallies["hamilton"] += whole
        if directed:
            order = rng.sample(nodes, len(nodes)) if rng.random() < 0.5 else list(nx.topological_sort(graph))
            wanted = order in list(nx.all_topological_sorts(graph))
            assert verifier("graph_topological_order")(*task_and_rollout(gold, " ".join(order))).primary == float(wanted)
            tallies["order"] += wanted
        elif nx.has_eulerian_path(graph) and graph.edges:
            walk = [a for a, _ in nx.eulerian_path(graph)] + [list(nx.eulerian_path(graph))[-1][1]]
            assert verifier("graph_euler_path")(*task_and_rollout(gold, " ".join(walk))).primary == 1.0
            assert verifier("graph_euler_path")(*task_and_rollout(gold, " ".join(walk[:-1]) or "0")).primary == 0.0
            tallies["euler"] += 1
    assert min(tallies.values()) >= 10, tallies


@pytest.mark.slow
def test_subsets_against_networkx() -> None:
    rng = random.Random(12)
    for _ in range(400):
        gold, graph = drawn(rng)
        nodes = list(graph)
        chosen = rng.sample(nodes, rng.randint(1, len(nodes)))
        said = ", ".join(chosen)
        sub = graph.subgraph(chosen)
        subsets = [set(c) for k in range(1, len(nodes) + 1) for c in itertools.combinations(nodes, k)]

        def judged(name: str, holds: bool, best: int, found: int, gold: dict = gold, said: str = said) -> None:
            score = verifier(f"graph_{name}")(*task_and_rollout(gold | {"value": best}, said))
            assert dict(score.components) == {"valid": float(holds), "correct": float(holds and found == best)}, (gold, said)

        independent = [s for s in subsets if not graph.subgraph(s).edges]
        judged("independent_set", not sub.edges, max(map(len, independent)), len(chosen))
        judged(
            "clique",
            sub.number_of_edges() == len(chosen) * (len(chosen) - 1) // 2,
            max(map(len, nx.find_cliques(graph))),
            len(chosen),
        )
        covers = [s for s in [set(), *subsets] if all(a in s or b in s for a, b in graph.edges)]
        judged("vertex_cover", set(chosen) in covers, max(1, min(map(len, covers))), len(chosen))
        judged(
            "dominating_set",
            nx.is_dominating_set(graph, chosen),
            min(len(s) for s in subsets if nx.is_dominating_set(graph, s)),
            len(chosen),
        )
        if graph.edges:
            pairs = rng.sample(list(graph.edges), rng.randint(1, len(graph.edges)))
            written = json.dumps([rng.sample(list(p), 2) for p in pairs])
            largest = len(nx.max_weight_matching(graph, maxcardinality=True))
            judged("matching", nx.is_matching(graph, set(pairs)), largest, len(pairs), said=written)
            tree = nx.Graph(pairs)
            spans = nx.is_tree(tree) and set(tree) == set(nodes)
            if nx.is_connected(graph):
                least = int(nx.minimum_spanning_tree(graph).size("weight"))
                total = sum(graph.edges[p]["weight"] for p in pairs)
                judged("spanning_tree", spans, least, total, said=written)
                minimal = [list(e) for e in nx.minimum_spanning_edges(graph, data=False)]
                judged("spanning_tree", True, least, least, said=json.dumps(minimal))


def test_partitions_against_networkx() -> None:
    rng = random.Random(13)
    right = 0
    for _ in range(700):
        gold, graph = drawn(rng)
        nodes = list(graph)
        colors = (
            {n: str(rng.randint(1, 3)) for n in nodes}
            if rng.random() < 0.4
            else {n: str(c) for n, c in nx.greedy_color(graph, strategy="random_sequential").items()}
        )
        proper = all(colors[a] != colors[b] for a, b in graph.edges)
        assert verifier("graph_coloring")(
            *task_and_rollout(gold, ", ".join(f"{n}: {c}" for n, c in colors.items()))
        ).primary == float(proper)
        groups = [sorted(c) for c in nx.connected_components(graph)]
        if rng.random() < 0.5 and len(groups) > 1:
            groups = [groups[0] + groups[1], *groups[2:]]
        wanted = {frozenset(g) for g in groups} == {frozenset(c) for c in nx.connected_components(graph)}
        assert verifier("graph_components")(*task_and_rollout(gold, json.dumps(groups))).primary == float(wanted)
        sides = (
            [set(s) for s in nx.bipartite.sets(graph)]
            if nx.is_bipartite(graph) and nx.is_connected(graph)
            else [set(nodes[:1]), set(nodes[1:])]
        )
        if rng.random() < 0.3 and len(sides[0]) > 1:
            sides[1].add(sides[0].pop())
        divides = nx.is_bipartite(graph) and all((a in sides[0]) != (b in sides[0]) for a, b in graph.edges)
        assert verifier("graph_bipartition")(*task_and_rollout(gold, json.dumps([sorted(s) for s in sides]))).primary == float(
            divides
        )
        right += divides
    assert right > 100
