"""Fifty slips that were written down before their answers were looked at: at least 45 are answered with what was meant."""

from __future__ import annotations

import re
from dataclasses import fields

from assay.cli.aliases import alias_named
from assay.cli.given_options import split_options
from assay.cli.option_names import unknown_option
from assay.cli.part_tree import take
from assay.cli.run_settings import name_own
from assay.cli.train_options import TrainOptions
from assay.recipes import quickstart
from assay.recipes.setting_names import SHORT

SLIPS = """
--learningrate 1e-4 -> lr
--lr_rate 1e-4 -> lr
--learn-rate 1e-4 -> lr
--grp-size 8 -> group-size
--groupsize 8 -> group-size
--n_rollouts 8 -> group-size
--num_samples 8 -> group-size
--max-tokens 32 -> max-new-tokens
--max_tokens 32 -> max-new-tokens
--max-newtokens 32 -> max-new-tokens
--temp 0.7 -> temperature
--tempereture 0.7 -> temperature
--topp 0.9 -> top-p
--top_p_value 0.9 -> top-p
--num_steps 10 -> steps
--total_steps 10 -> steps
--step 10 -> steps
--epoch 2 -> epochs
--num_train_epochs 2 -> steps
--seeed 3 -> seed
--random-seed 3 -> seed
--modle m -> model
--model-name m -> model
--checkpoint m -> checkpoint-every
--save-every 5 -> checkpoint-every
--eval_every 5 -> eval-every
--evaluate-every 5 -> eval-every
--kl_coeff 0.1 -> kl
--kl-coef 0.1 -> kl
--entropy_bonus 0.1 -> entropy
--entropy-coeff 0.1 -> entropy
--clip-eps 0.2 -> clip
--eps_clip 0.2 -> clip
--lora 8 -> lora-rank
--lora-dim 8 -> lora-rank
--warmup 5 -> warmup-steps
--wd 0.1 -> weight-decay
--weightdecay 0.1 -> weight-decay
--grad-clip 1 -> clip-norm
--gradient_clipping 1 -> clip-norm
--dtype bf16 -> precision
--bf16 -> precision
--cuda -> device
--gpu 1 -> device
--folder_name x -> folder
--output x -> folder
--objectve gspo -> objective
--method gspo -> objective
--loss gspo -> objective
--algo gspo -> objective
"""
"""What was typed, and the short option that was meant."""

BAR = 45


def is_answered(words: str, meant: str) -> bool:
    """Whether the words change the setting that was meant, or the answer names the option or another name of it."""
    _, given = split_options(words.split())
    run, own = quickstart(), {f.name for f in fields(TrainOptions)}
    (option,) = name_own(TrainOptions, given)
    if option.path == meant or (option.path in own and option.path == SHORT.get(meant, ("", ""))[1]):
        return True
    names = {meant, *SHORT.get(meant, ("", ""))[0].split()}
    alias = alias_named(option.path)
    if alias is not None:
        return bool(names & set(alias.names))
    told = unknown_option(option, own, take(run))
    return any(re.search(rf"--{re.escape(name)}(?![\w-])", told) for name in names)


def test_fresh_slips_are_answered_with_what_was_meant() -> None:
    told = [tuple(line.split(" -> ")) for line in SLIPS.strip().splitlines()]
    wrong = [words for words, meant in told if not is_answered(words, meant)]
    assert len(told) == 50 and len(told) - len(wrong) >= BAR, wrong
