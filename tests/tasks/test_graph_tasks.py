"""Graph problems: their solvers beside networkx, their draws, wordings and refusals."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pytest

from assay.core.errors import ConfigError, DataError
from assay.tasks import Form, family
from assay.testing.problems import check_problem
from assay.verify.rollouts import task_and_rollout
from assay_tasks.graphs import counts, exact, rooted, search, tours, weighed
from assay_tasks.graphs.arrows import turned_once
from assay_tasks.graphs.base import Witness
from assay_tasks.graphs.drawing import any_graph, connected_graph, names, some, tree
from assay_tasks.graphs.net import Net, bits
from assay_tasks.graphs.routes import Distance, WeightedPath
from assay_tasks.graphs.sets import ThreeColoring
from assay_tasks.graphs.wording import CABLES, COURSES, FRIENDS, PIPES, ROADS, describe_graph

PROBLEMS: dict[str, Any] = {p.name: p for p in family("graphs").problems}  # pyright: ignore


def _graphs(count: int, most: int, connected: bool = False, directed: bool = False, weights: int = 0) -> list[tuple[Net, Any]]:
    """Random graphs as the solvers and as networkx see them."""
    out: list[tuple[Net, Any]] = []
    rng = Random(count * most + connected + 2 * directed + weights)
    for _ in range(count):
        n = rng.randint(3, most)
        m = some(1.0, 4.0, n, rng, least=n - 1 if connected else 1)
        edges = connected_graph(n, m, rng) if connected else any_graph(n, m, rng)
        if directed:
            edges = sorted({(b, a) if rng.random() < 0.5 else (a, b) for a, b in edges})
        net = Net(n, edges, [rng.randint(1, weights) for _ in edges] if weights else None, directed=directed)
        graph: Any = nx.DiGraph() if directed else nx.Graph()
        graph.add_nodes_from(range(n))
        for (a, b), w in zip(edges, net.weights or [1] * len(edges), strict=True):
            graph.add_edge(a, b, weight=w, capacity=w)
        out.append((net, graph))
    return out


def test_walks_agree_with_networkx() -> None:
    for net, graph in _graphs(150, 12):
        far = search.distances(net, 0)
        assert {i: d for i, d in enumerate(far) if d >= 0} == nx.single_source_shortest_path_length(graph, 0)
        assert sorted(search.pieces(net)) == sorted(sorted(c) for c in nx.connected_components(graph))
        bridges, joints = search.cuts(net)
        assert {frozenset(e) for e in bridges} == {frozenset(e) for e in nx.bridges(graph)}
        assert joints == sorted(nx.articulation_points(graph))
        girth = nx.girth(graph)
        assert search.girth(net) == (0 if girth == float("inf") else girth)
        assert (search.sides(net) is not None) == nx.is_bipartite(graph)
        assert (search.circle(net) is None) == nx.is_forest(graph)
        counted = search.shortest_count(net, 0)
        for target in range(1, net.n):
            if far[target] > 0:
                assert counted[target] == len(list(nx.all_shortest_paths(graph, 0, target)))
        matrix: Any = nx.to_numpy_array(graph).astype(int)
        assert search.walks(net, 0, 3) == (matrix @ matrix @ matrix)[0].tolist()
        assert search.broad(net, 0) == [0, *[b for _, b in nx.bfs_edges(graph, 0, sort_neighbors=sorted)]]
        assert search.deep(net, 0) == list(nx.dfs_preorder_nodes(graph, 0, sort_neighbors=sorted))


def test_directed_walks_agree_with_networkx() -> None:
    for net, graph in _graphs(150, 12, directed=True):
        assert [bits(seen) for seen in search.reach(net)] == [sorted({i, *nx.descendants(graph, i)}) for i in range(net.n)]
        assert {tuple(bits(mask)) for mask in search.strong(net)} == {
            tuple(sorted(c)) for c in nx.strongly_connected_components(graph)
        }
        found = search.order(net)
        assert (found is not None) == nx.is_directed_acyclic_graph(graph)
        if found is not None:
            place = {node: i for i, node in enumerate(found)}
            assert all(place[a] < place[b] for a, b in net.edges)


def test_weights_agree_with_networkx() -> None:
    for net, graph in _graphs(120, 10, connected=True, weights=9):
        far, _ = weighed.lengths(net, 0)
        assert dict(enumerate(far)) == nx.single_source_dijkstra_path_length(graph, 0)
        length, way = weighed.shortest(net, 0, net.n - 1)
        assert length == nx.path_weight(graph, way, "weight") == far[-1]
        least: Any = nx.minimum_spanning_tree(graph)
        places = weighed.spanning(net)
        assert sum((net.weights or [])[i] for i in places) == least.size("weight") and len(places) == net.n - 1
        assert weighed.flow(net, 0, net.n - 1) == nx.maximum_flow_value(graph, 0, net.n - 1)
        greatest: Any = nx.maximum_spanning_tree(graph)
        path = nx.shortest_path(greatest, 0, net.n - 1)
        assert weighed.widest(net, 0, net.n - 1) == min(graph.edges[e]["weight"] for e in pairwise(path))
        matrix: Any = nx.to_numpy_array(graph, weight=None)
        assert weighed.trees(net) == round(np.linalg.det((np.diag(matrix.sum(0)) - matrix)[1:, 1:]))
    for net, graph in _graphs(120, 9, directed=True, weights=9):
        assert weighed.flow(net, 0, net.n - 1) == nx.maximum_flow_value(graph, 0, net.n - 1)
        if nx.is_directed_acyclic_graph(graph):
            assert weighed.longest(net) == nx.dag_longest_path_length(graph)
    assert weighed.widest(Net(3, [(0, 1)], [4]), 0, 2) == 0 and weighed.trees(Net(4, [(0, 1), (2, 3)])) == 0


def test_hard_problems_agree_with_networkx_and_with_all_subsets() -> None:
    for net, graph in _graphs(80, 8):
        nodes = range(net.n)
        subsets = [set(s) for k in range(net.n + 1) for s in combinations(nodes, k)]
        free = max(len(s) for s in subsets if not any(a in s and b in s for a, b in net.edges))
        assert exact.independent(net).bit_count() == free
        assert exact.clique(net).bit_count() == max(len(c) for c in nx.find_cliques(graph))
        assert exact.dominating(net).bit_count() == min(len(s) for s in subsets if nx.is_dominating_set(graph, s))
        found: Any = nx.max_weight_matching(graph, maxcardinality=True)
        mine = exact.matching(net)
        assert len(mine) == len(found) and nx.is_matching(graph, set(mine))
        colors = exact.chromatic(net)
        coloring = exact.coloring(net, colors) or []
        assert all(coloring[a] != coloring[b] for a, b in net.edges) and max(coloring) < colors
        if net.n < 8:
            fewer = product(range(colors - 1), repeat=net.n)
            assert not any(all(c[a] != c[b] for a, b in net.edges) for c in fewer)
        if nx.is_bipartite(graph):
            assert len(exact.maximum_matching(net)) == len(mine) and nx.is_matching(graph, set(exact.maximum_matching(net)))


def test_tours_agree_with_networkx_and_with_all_orders() -> None:
    seen: Counter[str] = Counter()
    for net, graph in _graphs(100, 7, connected=True):
        adjacent = [set(row) for row in net.adjacent]
        orders = [p for p in permutations(range(net.n)) if all(b in adjacent[a] for a, b in pairwise(p))]
        rounds = [p for p in orders if p[0] in adjacent[p[-1]] and net.n > 2]
        path, cycle = exact.hamilton(net, False), exact.hamilton(net, True)
        assert tuple(path) in orders if path else not orders
        assert tuple(cycle) in rounds if cycle else not rounds
        assert (exact.euler(net, True) is not None) == nx.is_eulerian(graph)
        walk = exact.euler(net, False)
        assert (walk is not None) == (nx.is_eulerian(graph) or nx.is_semieulerian(graph))
        if walk:
            used = [frozenset(e) for e in pairwise(walk)]
            assert sorted(map(sorted, used)) == [list(e) for e in net.edges]
        seen.update({"path": bool(path), "cycle": bool(cycle), "walk": bool(walk)})
    assert all(10 < seen[kind] < 90 for kind in ("path", "cycle", "walk"))
    for n in range(3, 8):
        rng = Random(n)
        edges = list(combinations(range(n), 2))
        net = Net(n, edges, [rng.randint(1, 20) for _ in edges])
        far = {frozenset(e): w for e, w in zip(edges, net.weights or [], strict=True)}
        lengths = {p: sum(far[frozenset((p[i - 1], p[i]))] for i in range(n)) for p in permutations(range(n))}
        length, way = weighed.tour(net)
        assert length == min(lengths.values()) == lengths[tuple(way)]


def test_counts_agree_with_networkx() -> None:
    for net, graph in _graphs(120, 12):
        assert counts.cores(net) == [nx.core_number(graph)[i] for i in range(net.n)]
        assert counts.Triangles().find(net, {}) == sum(nx.triangles(graph).values()) // 3
        if net.n < 9:
            squares = sum(len(c) == 4 for c in nx.simple_cycles(graph, length_bound=4))
            assert counts.Squares().find(net, {}) == squares
        for node in range(net.n):
            if len(net.adjacent[node]) > 1:
                share = counts.Clustering().find(net, {"source": node})
                assert abs(share - Fraction(nx.clustering(graph, node))) < 1e-9


def test_trees_agree_with_networkx() -> None:
    rng = Random(5)
    for _ in range(60):
        n = rng.randint(3, 14)
        net = Net(n, tree(n, rng), names=tuple(map(str, range(n))))
        graph: Any = nx.Graph(net.edges)
        assert nx.is_tree(graph)
        assert rooted.PrueferCode().find(net, {}) == [str(i) for i in nx.to_prufer_sequence(graph)]
        root, node, other = rng.randrange(n), rng.randrange(n), rng.randrange(n)
        facts = {"source": root, "node": node, "other": other}
        downward = nx.bfs_tree(graph, root)
        assert rooted.Ancestor().find(net, facts) == nx.lowest_common_ancestor(downward, node, other)
        assert rooted.SubtreeSize().find(net, facts) == 1 + len(nx.descendants(downward, node))
        assert rooted.Height().find(net, facts) == nx.eccentricity(graph, root)
        assert rooted.TreeDiameter().find(net, facts) == nx.diameter(graph)
        post = nx.dfs_postorder_nodes(graph, root, sort_neighbors=sorted)
        assert rooted.PostOrder().find(net, facts) == [str(i) for i in post]


@pytest.mark.parametrize("name", ["closure_count", "distance_sum", "center", "longest_path"])
def test_whole_problems_agree_with_networkx(name: str) -> None:
    problem = PROBLEMS[f"graphs/{name}"]
    for index in range(25):
        facts = problem.draw(problem.levels[2], Random(index))
        net = problem.net(facts)
        graph: Any = (nx.DiGraph if problem.directed else nx.Graph)(net.edges)
        graph.add_nodes_from(range(net.n))
        wanted: Any = {
            "closure_count": lambda g: (
                nx.transitive_closure(g, reflexive=None).number_of_edges()
                - sum(g2 == g1 for g1, g2 in nx.transitive_closure(g, reflexive=None).edges)
            ),
            "distance_sum": lambda g: int(nx.wiener_index(g)),
            "center": lambda g: sorted(nx.center(g)),
            "longest_path": nx.dag_longest_path_length,
        }[name](graph)
        assert problem.find(net, facts) == wanted


@pytest.mark.prove
@pytest.mark.parametrize("name", PROBLEMS)
def test_each_problem_keeps_the_contract(name: str) -> None:
    check_problem(PROBLEMS[name], growth=1.5)


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_answer_is_right_too_often(name: str) -> None:
    problem = PROBLEMS[name]
    level = problem.levels[0]
    answers = Counter(problem.solve(problem.draw(level, Random(i))).answer for i in range(100))
    assert answers.most_common(1)[0][1] <= 72  # 60 of 100 and 2.5 standard deviations


@pytest.mark.parametrize("name", [n for n, p in PROBLEMS.items() if isinstance(p, Witness) and "none" in p.how])
def test_half_of_the_questions_have_no_answer(name: str) -> None:
    problem, level = PROBLEMS[name], PROBLEMS[name].levels[1]
    none = sum(problem.solve(problem.draw(level, Random(i))).answer == "none" for i in range(100))
    assert 30 <= none <= 70


def test_any_right_witness_is_right_and_others_are_not() -> None:
    facts = {"names": "A B C D", "edges": [0, 1, 0, 2, 1, 3, 2, 3], "source": 0, "target": 3}
    problem = PROBLEMS["graphs/shortest_path"]
    gold = problem.solve(facts).gold
    judge = problem.verifier(Form.PLAIN)
    said = ("A -> B -> D", "A -> C -> D", "A -> D", "A -> B -> A -> C -> D", "none")
    assert [judge(*task_and_rollout(gold, text)).primary for text in said] == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_facts_are_flat_and_in_canonical_order() -> None:
    for name, problem in PROBLEMS.items():
        facts = problem.draw(problem.levels[1], Random(1))
        net = problem.net(facts)
        assert net.edges == sorted(set(net.edges)) and net.facts()["edges"] == facts["edges"], name
        assert problem.directed or all(a < b for a, b in net.edges), name
        assert ("weights" in facts) == bool(problem.most) and len(net.names) == problem.levels[1] == len(set(net.names)), name


def test_looks() -> None:
    net = Net(3, [(0, 1), (1, 2)], names=("A", "B", "C"))
    assert describe_graph(net, ROADS, 0) in {
        f"An undirected graph has 3 nodes: A, B, C.\nIts edges: {', '.join(e)}."
        for e in [(x, y) for x in ("A-B", "B-A") for y in ("B-C", "C-B")]
        + [(y, x) for x in ("A-B", "B-A") for y in ("B-C", "C-B")]
    }
    assert describe_graph(net, FRIENDS, 1) == (
        "An undirected graph has 3 nodes. Each line names a node and its neighbours.\nA: B\nB: A, C\nC: B"
    )
    paid = describe_graph(Net(3, [(0, 1), (1, 2)], [1, 2], ("A", "B", "C")), CABLES, 2)
    assert " for 1 coin." in paid and " for 2 coins." in paid
    story = describe_graph(net, FRIENDS, 2)
    assert story.startswith("In a club there are 3 people: A, B, C.") and story.count("are friends") == 2
    arrows = Net(3, [(2, 0)], [7], ("A", "B", "C"), True)
    assert "Its edges, each with its capacity in brackets: C->A (7)." in describe_graph(arrows, PIPES, 0)
    assert describe_graph(arrows, PIPES, 1).endswith("A dash stands for none.\nA: -\nB: -\nC: A (7)")
    assert "A pipe leads from C to A and carries at most 7 litres per second." in describe_graph(arrows, PIPES, 2)
    empty = Net(3, [], names=("A", "B", "C"), directed=True)
    assert describe_graph(empty, COURSES, 0).endswith("\nIt has no edges.")
    assert describe_graph(empty, COURSES, 2).endswith("There are no rules.")


def test_names() -> None:
    kinds: Counter[str] = Counter()
    for index in range(300):
        found = names(5, ("Ash", "Birch", "Elm", "Fir", "Oak", "Yew"), Random(index))
        assert len(set(found)) == 5
        number = all(name.isdigit() for name in found)
        assert list(found) == sorted(found, key=lambda name: (int(name) if number else 0, name))
        kinds["number" if number else "letter" if all(len(name) == 1 for name in found) else "word"] += 1
    assert min(kinds.values()) > 30 and set(kinds) == {"number", "letter", "word"}
    assert all(name.isdigit() for name in names(30, ("Ash",), Random(1)))


def test_settings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"graphs/distance\.degree must be two ascending"):
        Distance(degree=(3.0, 2.0))
    with pytest.raises(ConfigError, match="numbers of nodes from 3 to 40"):
        WeightedPath(levels=(2, 5))
    with pytest.raises(
        DataError, match=r"1000 random graphs of 3 nodes .* had none that gives a question of graphs/strong_component_of"
    ):
        PROBLEMS["graphs/strong_component_of"].__class__(degree=(0.0, 0.5), levels=(3,)).draw(3, Random(0))
    with pytest.raises(DataError, match="without a Hamilton path; use another 'degree'"):
        for seed in range(9):
            tours.AllNodes(degree=(4.0, 4.0), levels=(5,)).draw(5, Random(seed))
    with pytest.raises(DataError, match=r"with [24] nodes of odd degree"):
        for seed in range(9):
            tours.EulerWalk(levels=(3,)).draw(3, Random(seed))
    with pytest.raises(DataError, match="three colors"):
        for seed in range(9):
            ThreeColoring(levels=(3,)).draw(3, Random(seed))
    with pytest.raises(DataError, match="a path of two edges could be closed"):
        turned_once(2, (0.0, 0.0), True, Random(0))


def test_density_is_a_setting() -> None:
    thin, thick = (
        sum(len(Distance(degree=d, levels=(12,)).draw(12, Random(i))["edges"]) for i in range(40))
        for d in ((2.0, 2.0), (6.0, 6.0))
    )
    assert thin == 40 * 24 and thick == 40 * 72
