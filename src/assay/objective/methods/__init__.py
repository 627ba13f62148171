# ruff: noqa: I001  (one line a module, packed)
"""Published methods as short compositions; `methods` lists them.

Each docstring gives formula, source, defaults and what was left out. Notation: ``mu_q``, ``sd_q`` mean and standard deviation
of a group's rewards, ``sd_B`` of the batch's; ``r_t = exp(logp_new - logp_old)``; ``T_i`` loss tokens of a rollout; ``D`` a
global count.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from assay.core.errors import UnknownNameError
from assay.core.util.renamed import RENAMED
from assay.objective.methods.registry import Method, name_among, registered_methods

if TYPE_CHECKING:
    from assay.objective.objective import Objective

    # fmt: off
    from assay.objective.methods.agents import aepo, delethink, m_grpo, reseek
    from assay.objective.methods.anchors import dph_rl, pro_rl, pro_rl_v2
    from assay.objective.methods.classical import loop, nll, reinforce, reinforce_pp, reinforce_pp_baseline, rloo
    from assay.objective.methods.combined import constrained, dvao, hypervolume_weighting, log_tamed, tmn_reweight
    from assay.objective.methods.credit import (
        agentic_reinforce, gdpo, gigpo, gpg_nonzero, grpo_leave_one_out, grpo_passk, grpo_process, hierarchical_grpo, maxrl,
        opo, otb, pass_at_k_training, ppo, prpo, rae, reinforce_discounted, remax,
    )
    from assay.objective.methods.distill import (
        gkd, iw_opd, kd_estimator, kd_topk, opd, opd_advantage, opd_clipped, ref_kl, sdft, sdpo,
    )
    from assay.objective.methods.entropy import (
        clip_cov, cure, entropy_only, grpo_entropy, kl_cov, lp_reg, nlpo, one_shot, rapo, skywork_or1, steer, top_entropy,
    )
    from assay.objective.methods.group import cispo, dapo, dispo, dr_grpo, grpo, gspo, lite_ppo, scale_rl
    from assay.objective.methods.hybrid import (
        a_lol, calib_rl, echo, gdc, guide_grpo, kdrl, kl_rl, oreal, r_gold, rest_grpo, rl_plus, visurf, weighted_bc,
    )
    from assay.objective.methods.mismatch import areal, geo_mask, hispo, icepop, masked_is, tis
    from assay.objective.methods.preference import cpl, cpo, dpo, inpo, ipo, kto, orpo, simpo
    from assay.objective.methods.preference_variants import aot, apo, bco, discopop, exo, f_dpo, ld_dpo, mpo, nca, rso, sppo
    from assay.objective.methods.scores import a2po, copg, direct_advantage, pacs, real
    from assay.objective.methods.trust import (
        cispo_masked, dppo, dro, gmpo, gpg, kimi15, luspo, m2po, opsm, prime_rl, prime_rl_ipo, rollout_is, sapo, topr, vespo,
    )
    from assay.objective.methods.value import archer, b_coder, ppo_hl_gauss, rover, vapo
    from assay.objective.methods.weighted import (
        campo, expert_iteration, grpo_s, gui_g1, pairwise_rl, pf_grpo, pf_ppo, progrpo, srpo, univg_r1, w_grpo,
    )
    # fmt: on

# fmt: off
__all__ = [
    "Method", "a2po", "a_lol", "aepo", "agentic_reinforce", "aot", "apo", "archer", "areal", "b_coder", "bco", "calib_rl",
    "campo",
    "cispo", "cispo_masked", "clip_cov", "constrained", "copg", "cpl", "cpo", "cure", "dapo", "delethink", "direct_advantage",
    "discopop",
    "dispo", "dph_rl", "dpo", "dppo", "dr_grpo", "dro", "dvao", "echo", "entropy_only", "exo", "expert_iteration", "f_dpo",
    "gdc", "gdpo", "geo_mask", "gigpo", "gkd", "gmpo", "gpg", "gpg_nonzero", "grpo", "grpo_entropy", "grpo_leave_one_out",
    "grpo_passk", "grpo_process", "grpo_s", "gspo", "gui_g1", "guide_grpo", "hierarchical_grpo", "hispo", "hypervolume_weighting",
    "icepop", "inpo", "ipo", "iw_opd", "kd_estimator", "kd_topk", "kdrl", "kimi15", "kl_cov", "kl_rl", "kto", "ld_dpo",
    "lite_ppo", "log_tamed", "loop",
    "lp_reg", "luspo", "m2po", "m_grpo", "masked_is", "maxrl", "methods", "mpo", "build_method", "nca", "nll", "nlpo",
    "one_shot", "opd", "opd_advantage", "opd_clipped", "opo", "opsm", "oreal", "orpo", "otb", "pacs", "pairwise_rl",
    "pass_at_k_training", "pf_grpo", "pf_ppo", "ppo", "ppo_hl_gauss", "prime_rl", "prime_rl_ipo", "pro_rl", "pro_rl_v2",
    "progrpo", "prpo", "r_gold", "rae", "rapo", "real", "ref_kl", "reinforce", "reinforce_discounted", "reinforce_pp",
    "reinforce_pp_baseline", "remax",
    "reseek", "rest_grpo", "rl_plus", "rloo", "rollout_is", "rover", "rso", "sapo", "scale_rl", "sdft",
    "sdpo", "simpo", "skywork_or1", "sppo", "srpo", "steer", "tis", "tmn_reweight", "top_entropy", "topr", "univg_r1", "vapo",
    "vespo", "visurf", "w_grpo", "weighted_bc",
]
# fmt: on

_HOME = {
    "agents": "aepo delethink m_grpo reseek",
    "anchors": "dph_rl pro_rl pro_rl_v2",
    "classical": "loop nll reinforce reinforce_pp reinforce_pp_baseline rloo",
    "combined": "constrained dvao hypervolume_weighting log_tamed tmn_reweight",
    "credit": "agentic_reinforce gdpo gigpo gpg_nonzero grpo_leave_one_out grpo_passk grpo_process hierarchical_grpo maxrl opo "
    "otb pass_at_k_training ppo prpo rae reinforce_discounted remax",
    "distill": "gkd iw_opd kd_estimator kd_topk opd opd_advantage opd_clipped ref_kl sdft sdpo",
    "entropy": "clip_cov cure entropy_only grpo_entropy kl_cov lp_reg nlpo one_shot rapo skywork_or1 steer top_entropy",
    "group": "cispo dapo dispo dr_grpo grpo gspo lite_ppo scale_rl",
    "hybrid": "a_lol calib_rl echo gdc guide_grpo kdrl kl_rl oreal r_gold rest_grpo rl_plus visurf weighted_bc",
    "mismatch": "areal geo_mask hispo icepop masked_is tis",
    "preference": "cpl cpo dpo inpo ipo kto orpo simpo",
    "preference_variants": "aot apo bco discopop exo f_dpo ld_dpo mpo nca rso sppo",
    "scores": "a2po copg direct_advantage pacs real",
    "trust": "cispo_masked dppo dro gmpo gpg kimi15 luspo m2po opsm prime_rl prime_rl_ipo rollout_is sapo topr vespo",
    "value": "archer b_coder ppo_hl_gauss rover vapo",
    "weighted": "campo expert_iteration grpo_s gui_g1 pairwise_rl pf_grpo pf_ppo progrpo srpo univg_r1 w_grpo",
}


_MODULE = {name: module for module, names in _HOME.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name in _MODULE:
        return getattr(import_module(f"assay.objective.methods.{_MODULE[name]}"), name)
    if new := RENAMED[__name__].get(name):
        raise ImportError(f"{__name__}.{name} is called {new} now; write: from {__name__} import {new}")
    raise AttributeError(f"module 'assay.objective.methods' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def methods() -> Mapping[str, Method]:
    """All named methods, sorted by name.

    >>> from assay.objective.methods import methods
    >>> list(methods())[:3]
    ['a2po', 'a_lol', 'aepo']
    """
    for module in _HOME:
        import_module(f"assay.objective.methods.{module}")
    return dict(sorted(registered_methods().items()))


def build_method(name: str, **settings: Any) -> Objective:
    """The composition that a name stands for.

    Raises:
        UnknownNameError: no such method, or no such setting.

    >>> build_method("cispo", cap=4.0).policy.trust.positive
    (0.0, 4.0)
    """
    known = methods()
    if (found := name_among(name, known)) is None:
        raise UnknownNameError("method", name, known)
    return known[found].objective(**settings)


def method_named(name: str) -> str | None:
    """The method's own name for one in another case, or with dashes; None where no method is meant.

    >>> method_named("DAPO"), method_named("Dr-GRPO"), method_named("gpro")
    ('dapo', 'dr_grpo', None)
    """
    return name_among(name, methods())
